// A driver for my queue: replace the queue in memory by yours.
//
//	go build -o driver driver.go && brokerproof check exec:./driver
//
// Each request is one line of JSON on standard input, each answer one line on standard output.
// docs/reference/protocol.md of brokerproof has every operation and every claim.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

type fields = map[string]any

// Claim what your queue promises, and no more: only that is asked.
var claims = fields{"get": true, "release_position": "original"}

// A message with its place in the queue; while it is held, with its delivery.
type entry struct {
	place                    int
	message                  string
	returned                 bool
	delivery, channel, queue string
}

// REPLACE: let each method call your own queue.
type queue struct {
	waiting []entry
	arrived int
}

func (q *queue) put(message string) {
	q.arrived++
	q.waiting = append(q.waiting, entry{place: q.arrived, message: message})
}

func (q *queue) take() (entry, bool) {
	if len(q.waiting) == 0 {
		return entry{}, false
	}
	next := q.waiting[0]
	q.waiting = q.waiting[1:]
	return next, true
}

func (q *queue) giveBack(e entry) {
	q.waiting = append(q.waiting, entry{place: e.place, message: e.message, returned: true})
	slices.SortFunc(q.waiting, func(a, b entry) int { return a.place - b.place })
}

var queues map[string]*queue
var held []entry
var deliveries int

func failed(code, message string) fields {
	return fields{"ok": false, "error": fields{"code": code, "message": message}}
}

func get(asked fields, name string) []fields {
	next, found := queues[name].take()
	if !found {
		return []fields{}
	}
	deliveries++
	next.delivery, next.queue = fmt.Sprintf("d%d", deliveries), name
	next.channel = asked["channel"].(string)
	if asked["mode"] == "acknowledge" {
		held = append(held, next)
	}
	return []fields{{"event": "delivered", "delivery": next.delivery, "consumer": nil,
		"queue": name, "message": next.message, "redelivered": next.returned}}
}

// Ends the deliveries that are meant; `back` returns their messages.
func settle(back bool, meant func(entry) bool) bool {
	before := len(held)
	held = slices.DeleteFunc(held, func(e entry) bool {
		if back && meant(e) {
			queues[e.queue].giveBack(e)
		}
		return meant(e)
	})
	return len(held) < before
}

func answer(asked fields) fields {
	name, _ := asked["queue"].(string)
	events := []fields{}
	switch op := asked["op"].(string); op {
	case "hello":
		return fields{"ok": true, "name": "my queue", "version": "1", "capabilities": claims}
	case "reset":
		queues, held, deliveries = map[string]*queue{}, nil, 0
	case "declare":
		if asked["order"].(fields)["kind"] != "fifo" || asked["durable"] == true || asked["auto_delete"] == true {
			return failed("unsupported", "queues are first in, first out, and in memory")
		}
		if queues[name] == nil {
			queues[name] = &queue{}
		}
	case "publish", "get":
		if queues[name] == nil {
			return failed("refused", "there is no queue "+name)
		}
		if op == "get" {
			events = get(asked, name)
			break
		}
		message := asked["message"].(fields)
		if level := message["priority"].(float64); level < 0 || level > 9 {
			return failed("refused", "priorities are 0 to 9")
		}
		queues[name].put(message["id"].(string))
	case "acknowledge", "reject", "release":
		if !settle(op == "release", func(e entry) bool { return e.delivery == asked["delivery"] }) {
			return failed("refused", "there is no such delivery")
		}
	case "close_channel":
		settle(true, func(e entry) bool { return e.channel == asked["channel"] })
	case "drain":
	default:
		return failed("unsupported", op)
	}
	return fields{"ok": true, "events": events}
}

func main() {
	requests, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for asked := (fields{}); requests.Decode(&asked) == nil; asked = (fields{}) {
		told := answer(asked)
		told["id"] = asked["id"]
		answers.Encode(told)
	}
}
