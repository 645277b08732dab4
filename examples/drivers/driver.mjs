// A driver in JavaScript, as a stranger would write it: the standard library, and docs/reference/protocol.md.
//
// It reads one request a line from standard input, answers each with one line on standard output, and
// ends when its input does. The broker behind it is a small one in memory:
//
//     brokerproof check "exec:node examples/drivers/driver.mjs"

import { createInterface } from "node:readline";

const CAPABILITIES = {
  orders: ["fifo", "priority"],
  priority_levels: 10,
  priority_mapping: "amqp",
  modes: ["acknowledge", "automatic", "browse"],
  credit: ["messages"],
  get: true,
  browse: true,
  release_position: "original",
};

// The operation did not happen, and why.
class Failure extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

const refused = (message) => new Failure("refused", message);
const unsupported = (message) => new Failure("unsupported", message);

// Levels lie around the default priority, 4; a fifo queue has one level.
function levelOf(priority, order) {
  if (order.kind === "fifo") return 0;
  const level = priority - (5 - Math.ceil(order.levels / 2));
  return Math.min(Math.max(level, 0), order.levels - 1);
}

const sameOrder = (one, other) => one.kind === other.kind && one.levels === other.levels;

class Broker {
  queues = new Map(); // name -> { name, order, entries }, entries in the order in which they are given
  consumers = new Map(); // name -> { name, channel, queue, mode, window, passed }
  held = new Map(); // delivery -> { subscriber, entry }
  count = 0;
  events = [];

  handle({ id, op, ...fields }) {
    if (op === "hello") {
      return { id, ok: true, name: "example-node", version: "1", capabilities: CAPABILITIES };
    }
    this.events = [];
    const answer = { id, ok: true };
    try {
      if (!Object.hasOwn(OPERATIONS, op)) throw unsupported(`no ${op}`);
      OPERATIONS[op](this, fields);
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      answer.ok = false;
      answer.error = { code: failure.code, message: failure.message };
    }
    this.handOut();
    return { ...answer, events: this.events };
  }

  queue(name) {
    if (!this.queues.has(name)) throw refused(`no queue ${name}`);
    return this.queues.get(name);
  }

  // Forget a delivery, and return who held what.
  settled(delivery) {
    const found = this.held.get(delivery);
    if (found === undefined) throw refused(`no delivery ${delivery}`);
    this.held.delete(delivery);
    return found;
  }

  drop({ queue }, entry) {
    queue.entries.splice(queue.entries.indexOf(entry), 1);
  }

  // Show browsers what they have not gone by, then give subscribers one each, round and round.
  handOut() {
    for (const browser of this.consumers.values()) {
      if (browser.mode !== "browse" || !this.hasRoom(browser)) continue;
      for (const entry of browser.queue.entries) {
        if (!entry.held && !browser.passed.has(entry)) this.tell(browser, entry);
        browser.passed.add(entry);
      }
    }
    for (let before = -1; before !== this.events.length; ) {
      before = this.events.length;
      for (const subscriber of this.consumers.values()) {
        if (subscriber.mode === "browse" || !this.hasRoom(subscriber)) continue;
        const free = subscriber.queue.entries.find((entry) => !entry.held);
        if (free !== undefined) this.give(subscriber, free);
      }
    }
  }

  // Only what is acknowledged fills a window.
  hasRoom(consumer) {
    if (consumer.window === null) return true;
    const held = [...this.held.values()].filter(({ subscriber }) => subscriber === consumer);
    return held.length < consumer.window;
  }

  // Let a consumer hold a message, or have it for good.
  give(subscriber, entry) {
    const delivery = this.tell(subscriber, entry);
    if (subscriber.mode === "acknowledge") {
      entry.held = true;
      this.held.set(delivery, { subscriber, entry });
    } else {
      this.drop(subscriber, entry);
    }
  }

  tell({ name, queue }, { message, redelivered }) {
    this.count += 1;
    const delivery = `d${this.count}`;
    const told = { delivery, consumer: name, queue: queue.name, message, redelivered };
    this.events.push({ event: "delivered", ...told });
    return delivery;
  }
}

const OPERATIONS = {
  reset(broker) {
    Object.assign(broker, new Broker());
  },

  drain() {
    // There is never anything left to do.
  },

  declare(broker, { queue, order, durable, auto_delete }) {
    if (durable || auto_delete || !CAPABILITIES.orders.includes(order.kind)) {
      throw unsupported("neither durable nor auto-delete, fifo or priority only");
    }
    if (order.kind === "priority" && !(order.levels >= 1 && order.levels <= 10)) {
      throw unsupported("1 to 10 levels");
    }
    const known = broker.queues.get(queue);
    if (known === undefined) broker.queues.set(queue, { name: queue, order, entries: [] });
    else if (!sameOrder(known.order, order)) throw refused(`${queue} has another order`);
  },

  publish(broker, { queue, message }) {
    const { order, entries } = broker.queue(queue);
    if (!(message.priority >= 0 && message.priority <= 9)) throw refused("priorities are 0 to 9");
    const level = levelOf(message.priority, order);
    const place = entries.filter((entry) => entry.level >= level).length;
    entries.splice(place, 0, { message: message.id, level, held: false, redelivered: false });
  },

  consume(broker, { channel, queue, consumer, mode, credit, selector, priority, auto_close }) {
    const source = broker.queue(queue);
    if (selector !== null || priority !== 0 || auto_close || credit.bytes !== null) {
      throw unsupported("no selectors, consumer priorities, auto-close or windows of bytes");
    }
    if (broker.consumers.has(consumer)) throw refused(`${consumer} is in use`);
    const subscribed = { name: consumer, channel, queue: source, mode, window: credit.messages };
    broker.consumers.set(consumer, { ...subscribed, passed: new Set() });
  },

  credit(broker, { consumer, channel, messages, bytes }) {
    if (channel !== null || bytes !== null) throw unsupported("only a consumer's window of messages");
    if (!broker.consumers.has(consumer)) throw refused(`no consumer ${consumer}`);
    broker.consumers.get(consumer).window = messages;
  },

  // What the consumer holds stays with its channel.
  cancel(broker, { consumer }) {
    if (!broker.consumers.delete(consumer)) throw refused(`no consumer ${consumer}`);
  },

  // A get is a consumer without a name, for a moment.
  get(broker, { channel, queue, mode }) {
    const source = broker.queue(queue);
    const free = source.entries.find((entry) => !entry.held);
    if (free !== undefined) broker.give({ name: null, channel, queue: source, mode }, free);
  },

  acknowledge(broker, { delivery }) {
    const { subscriber, entry } = broker.settled(delivery);
    broker.drop(subscriber, entry);
  },

  reject(broker, fields) {
    OPERATIONS.acknowledge(broker, fields);
  },

  // The message is free again, at the place that it never lost.
  release(broker, { delivery }) {
    const { entry } = broker.settled(delivery);
    entry.held = false;
    entry.redelivered = true;
  },

  // All its consumers leave, then what is held through it is released.
  close_channel(broker, { channel }) {
    for (const [name, consumer] of [...broker.consumers]) {
      if (consumer.channel === channel) broker.consumers.delete(name);
    }
    for (const [delivery, { subscriber }] of [...broker.held]) {
      if (subscriber.channel === channel) OPERATIONS.release(broker, { delivery });
    }
  },

  purge(broker, { queue }) {
    const source = broker.queue(queue);
    source.entries = source.entries.filter((entry) => entry.held);
  },

  // The consumers did not ask for that, so it is told.
  delete(broker, { queue }) {
    const source = broker.queue(queue);
    broker.queues.delete(queue);
    for (const [consumer, { queue: theirs }] of [...broker.consumers]) {
      if (theirs !== source) continue;
      broker.consumers.delete(consumer);
      broker.events.push({ event: "consumer_closed", consumer });
    }
    for (const [delivery, { subscriber }] of [...broker.held]) {
      if (subscriber.queue === source) broker.held.delete(delivery);
    }
  },
};

const broker = new Broker();
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(broker.handle(JSON.parse(line))) + "\n");
}
