// kafkajs: copies batches in transactions. Arguments: bootstrap, folder, input, output.
const { Kafka, logLevel } = require("kafkajs");

const [bootstrap, , source, target] = process.argv.slice(2);
const kafka = new Kafka({
  clientId: "kafkajs-copy",
  brokers: [bootstrap],
  logLevel: logLevel.WARN,
  retry: { initialRetryTime: 200, maxRetryTime: 1000, retries: 100 },
});
const groupId = "kafkajs-copy";
const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 1000, readUncommitted: false });
// a transactional id per partition fences the transaction of a killed process
const producers = new Map();

async function producerOf(partition) {
  if (!producers.has(partition)) {
    const transactionalId = `kafkajs-copy-${partition}`;
    const settings = { transactionalId, idempotent: true, maxInFlightRequests: 1, transactionTimeout: 10000 };
    const producer = kafka.producer(settings);
    await producer.connect();
    producers.set(partition, producer);
  }
  return producers.get(partition);
}

async function copy({ batch }) {
  const { partition } = batch;
  const transaction = await (await producerOf(partition)).transaction();
  try {
    const messages = batch.messages.map(({ key, value }) => ({ key, value }));
    await transaction.send({ topic: target, messages });
    const offset = (BigInt(batch.lastOffset()) + 1n).toString();
    await transaction.sendOffsets({
      consumerGroupId: groupId,
      topics: [{ topic: source, partitions: [{ partition, offset }] }],
    });
    await transaction.commit();
  } catch (error) {
    await transaction.abort().catch(() => process.exit(1));
    throw error;
  }
}

async function main() {
  await consumer.connect();
  await consumer.subscribe({ topics: [source], fromBeginning: true });
  consumer.on(consumer.events.CRASH, () => process.exit(1));
  await consumer.run({ autoCommit: false, eachBatchAutoResolve: true, eachBatch: copy });
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
