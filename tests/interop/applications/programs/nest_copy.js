// NestJS: a microservice that copies events, then commits them. Arguments: bootstrap, folder, input, output.
require("reflect-metadata");
const { Controller, Module } = require("@nestjs/common");
const { NestFactory } = require("@nestjs/core");
const { ClientKafka, Ctx, EventPattern, KafkaContext, Payload, Transport } = require("@nestjs/microservices");
const { lastValueFrom } = require("rxjs");

const [bootstrap, , source, target] = process.argv.slice(2);
const retry = { initialRetryTime: 200, maxRetryTime: 1000, retries: 100 };
const client = { clientId: "nest-copy", brokers: [bootstrap], retry };
const consumer = { groupId: "nest-copy", sessionTimeout: 6000, heartbeatInterval: 1000 };
const out = new ClientKafka({ client, producerOnlyMode: true, producer: { idempotent: true, maxInFlightRequests: 1 } });

class Copy {
  async copy(_, context) {
    const { key, value, offset } = context.getMessage();
    await lastValueFrom(out.emit(target, { key, value }));
    const next = (BigInt(offset) + 1n).toString();
    await context.getConsumer().commitOffsets([{ topic: source, partition: context.getPartition(), offset: next }]);
  }
}

// the decorators, as the TypeScript compiler applies them
const handler = Object.getOwnPropertyDescriptor(Copy.prototype, "copy");
Payload()(Copy.prototype, "copy", 0);
Ctx()(Copy.prototype, "copy", 1);
Reflect.defineMetadata("design:paramtypes", [Object, KafkaContext], Copy.prototype, "copy");
EventPattern(source)(Copy.prototype, "copy", handler);
Controller()(Copy);

class Application {}
Module({ controllers: [Copy] })(Application);

async function main() {
  await out.connect();
  const options = { client, consumer, subscribe: { fromBeginning: true }, run: { autoCommit: false } };
  const service = await NestFactory.createMicroservice(Application, { transport: Transport.KAFKA, options, logger: ["error", "warn"] });
  await service.listen();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
