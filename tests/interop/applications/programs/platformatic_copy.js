// @platformatic/kafka: copies messages, then commits them. Arguments: bootstrap, folder, input, output.
const { Consumer, Producer, stringDeserializers, stringSerializers } = require("@platformatic/kafka");

const [bootstrap, , source, target] = process.argv.slice(2);
const client = { clientId: "platformatic-copy", bootstrapBrokers: [bootstrap], retries: 100, retryDelay: 200 };
const producer = new Producer({ ...client, idempotent: true, serializers: stringSerializers });
const consumer = new Consumer({
  ...client,
  groupId: "platformatic-copy",
  sessionTimeout: 6000,
  heartbeatInterval: 1000,
  autocommit: false,
  deserializers: stringDeserializers,
});

async function main() {
  const stream = await consumer.consume({ topics: [source], mode: "committed", fallbackMode: "earliest" });
  for await (const message of stream) {
    await producer.send({ messages: [{ topic: target, key: message.key, value: message.value }] });
    await message.commit();
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
