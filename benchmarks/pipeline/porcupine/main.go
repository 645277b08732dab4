// Whether a history of a queue is linearizable, by Porcupine; prints the verdict and the seconds.
//
// Reads a history as JSON Lines. A publish puts a message at the end of its queue, a delivery takes
// the first; what was never given is still in the queue.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

type record struct {
	Op, Queue, Message string
	Start              int64
	End                *int64
}

type operation struct {
	publishes      bool
	queue, message string
}

func main() {
	operations := read(os.Args[1])
	model := porcupine.Model{
		Partition: byQueue,
		Init:      func() interface{} { return "" },
		Step: func(state, input, _ interface{}) (bool, interface{}) {
			waiting, asked := state.(string), input.(operation)
			if asked.publishes {
				return true, waiting + asked.message + " "
			}
			first := asked.message + " "
			if len(waiting) < len(first) || waiting[:len(first)] != first {
				return false, state
			}
			return true, waiting[len(first):]
		},
	}
	begun := time.Now()
	verdict := porcupine.CheckOperationsTimeout(model, operations, 60*time.Second)
	fmt.Printf("%s %.3f\n", verdict, time.Since(begun).Seconds())
}

func read(path string) []porcupine.Operation {
	file, err := os.Open(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	defer file.Close()
	var operations []porcupine.Operation
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var each record
		if err := json.Unmarshal(lines.Bytes(), &each); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		if each.Op != "publish" && each.Op != "deliver" {
			continue
		}
		end := int64(math.MaxInt64)
		if each.End != nil {
			end = *each.End
		}
		operations = append(operations, porcupine.Operation{
			ClientId: len(operations),
			Input:    operation{each.Op == "publish", each.Queue, each.Message},
			Call:     each.Start,
			Output:   nil,
			Return:   end,
		})
	}
	return operations
}

func byQueue(history []porcupine.Operation) [][]porcupine.Operation {
	queues := map[string][]porcupine.Operation{}
	for _, each := range history {
		name := each.Input.(operation).queue
		queues[name] = append(queues[name], each)
	}
	var parts [][]porcupine.Operation
	for _, each := range queues {
		parts = append(parts, each)
	}
	return parts
}
