// A driver for my queue: replace the queue in memory by yours.
//
//     brokerproof check "exec:node driver.mjs"
//
// Each request is one line of JSON on standard input, each answer one line on standard output.
// docs/reference/protocol.md of brokerproof has every operation and every claim.

import { createInterface } from "node:readline";

// Claim what your queue promises, and no more: only that is asked.
const claims = { get: true, release_position: "original" };

// REPLACE: let each method call your own queue.
class Queue {
  waiting = [];
  arrived = 0;

  // Take responsibility for a message.
  put(message) {
    this.waiting.push({ place: ++this.arrived, message, returned: false });
  }

  // Return the next message, which is held from now on, or undefined.
  take() {
    return this.waiting.shift();
  }

  // Return a message that was held to its place.
  giveBack(entry) {
    this.waiting.push({ ...entry, returned: true });
    this.waiting.sort((one, other) => one.place - other.place);
  }
}

let queues, held, deliveries;

class Failure extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

function queueOf({ queue }) {
  if (!queues.has(queue)) throw new Failure("refused", `there is no queue ${queue}`);
  return queues.get(queue);
}

function settle({ delivery }) {
  const found = held.get(delivery);
  if (!found) throw new Failure("refused", `nothing is held by ${delivery}`);
  held.delete(delivery);
  return found;
}

// One function an operation, with the request's fields; what they return are events, if any.
const operations = {
  reset() {
    queues = new Map();
    held = new Map();
    deliveries = 0;
  },
  declare({ queue, order, durable, auto_delete }) {
    if (order.kind !== "fifo" || durable || auto_delete) {
      throw new Failure("unsupported", "queues are first in, first out, and in memory");
    }
    if (!queues.has(queue)) queues.set(queue, new Queue());
  },
  publish(asked) {
    const { id, priority } = asked.message;
    if (priority < 0 || priority > 9) throw new Failure("refused", "priorities are 0 to 9");
    queueOf(asked).put(id);
  },
  get(asked) {
    const entry = queueOf(asked).take();
    if (!entry) return [];
    const { queue, channel, mode } = asked;
    const delivery = `d${++deliveries}`;
    if (mode === "acknowledge") held.set(delivery, { queue, channel, entry });
    const { message, returned: redelivered } = entry;
    return [{ event: "delivered", delivery, consumer: null, queue, message, redelivered }];
  },
  acknowledge(asked) {
    settle(asked);
  },
  reject(asked) {
    settle(asked);
  },
  release(asked) {
    const { queue, entry } = settle(asked);
    queues.get(queue).giveBack(entry);
  },
  close_channel({ channel }) {
    for (const [delivery, taken] of [...held]) {
      if (taken.channel === channel) operations.release({ delivery });
    }
  },
  drain() {},
};

function answer(asked) {
  if (asked.op === "hello") {
    return { ok: true, name: "my queue", version: "1", capabilities: claims };
  }
  try {
    if (!Object.hasOwn(operations, asked.op)) throw new Failure("unsupported", asked.op);
    return { ok: true, events: operations[asked.op](asked) ?? [] };
  } catch (failure) {
    if (!(failure instanceof Failure)) throw failure;
    return { ok: false, error: { code: failure.code, message: failure.message } };
  }
}

operations.reset();
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  process.stdout.write(`${JSON.stringify({ id: asked.id, ...answer(asked) })}\n`);
}
