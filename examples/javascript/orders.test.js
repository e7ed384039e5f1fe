// A test of kafkajs against a real broker that it starts itself: `odradek` on the path, or named by ODRADEK.
//   npm install kafkajs && node --test
const assert = require("node:assert");
const { spawn } = require("node:child_process");
const { mkdtempSync, rmSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { join } = require("node:path");
const { createInterface } = require("node:readline");
const { after, before, test } = require("node:test");
const { Kafka, logLevel } = require("kafkajs");

class Broker {
  // Starts a broker; its control server is that of docs/control.md.
  async start() {
    this.data = mkdtempSync(join(tmpdir(), "orders-"));
    const options = ["odradek.profile=test", "odradek.control.listener=127.0.0.1:0"].flatMap((one) => ["--set", one]);
    const words = ["run", "--data", this.data, "--listen", "127.0.0.1:0", ...options];
    this.process = spawn(process.env.ODRADEK ?? "odradek", words, { stdio: ["ignore", "pipe", "ignore"] });
    for await (const line of createInterface({ input: this.process.stdout })) {
      const [word, address] = line.split(" ");
      this[word] = address; // control HOST:PORT, then ready HOST:PORT
      if (word === "ready") break;
    }
  }

  async ask(method, path, body) {
    const content = body && { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
    const response = await fetch(`http://${this.control}${path}`, { method, ...content });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    return answer;
  }

  async stop() {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGKILL");
    await ended;
    rmSync(this.data, { recursive: true });
  }
}

const broker = new Broker();
before(() => broker.start());
after(() => broker.stop());

test("an order that is refused at first is stored, and gone after a week", async () => {
  await broker.ask("POST", "/v1/topics", { topic: "orders" });
  const fault = await broker.ask("POST", "/v1/faults", {
    api: "Produce", topic: "orders", error: "NOT_ENOUGH_REPLICAS", times: 2,
  });
  const kafka = new Kafka({ brokers: [broker.ready], logLevel: logLevel.NOTHING, retry: { initialRetryTime: 10 } });
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic: "orders", messages: [{ value: "one" }] });
  await producer.disconnect();
  assert.strictEqual((await broker.ask("DELETE", `/v1/faults/${fault.id}`)).fired, 2);

  const values = async () => (await broker.ask("GET", "/v1/records?topic=orders")).records.map((one) => one.value);
  assert.deepStrictEqual(await values(), ["one"]);
  await broker.ask("POST", "/v1/clock", { advance_ms: 8 * 24 * 3600 * 1000 });
  assert.deepStrictEqual(await values(), []);
});
