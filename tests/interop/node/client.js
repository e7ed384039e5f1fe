// kafkajs driven by lines on standard input: the same commands and answers as jvm/Client.java.
//
// kafkajs consumes in groups only; reading a partition by assignment goes to its own Cluster and Broker, which is the
// same protocol code below the group.

'use strict'

const fs = require('node:fs')
const readline = require('node:readline')
const { Kafka, CompressionTypes, CompressionCodecs, Partitioners, logLevel } = require('kafkajs')
const Cluster = require('kafkajs/src/cluster')
const defaultSocketFactory = require('kafkajs/src/network/socketFactory')
const { createLogger } = require('kafkajs/src/loggers')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')

const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy }
const ACKS = { 0: 0, 1: 1, all: -1 }
const TIMEOUT_MS = 30000

const logToErrors = () => ({ namespace, label, log }) => process.stderr.write(`${label} ${namespace} ${log.message}\n`)

// The settings of security in a file of JSON: {"ssl": {"ca": […], "key": …, "cert": …}, "sasl": {…}}. A token in it is
// made the provider that kafkajs asks for one.
function security({ config }) {
  if (!config) return {}
  const { sasl, ...others } = JSON.parse(fs.readFileSync(config))
  if (!sasl) return others
  const { token, ...named } = sasl
  return {
    ...others,
    sasl: token ? { ...named, oauthBearerProvider: async () => ({ value: token }) } : named,
  }
}

function kafka(bootstrap, secured = {}) {
  return new Kafka({
    clientId: 'odradek-interop',
    brokers: [bootstrap],
    logLevel: logLevel.WARN,
    logCreator: logToErrors,
    retry: { retries: 3 },
    ...secured,
  })
}

async function within(client, work) {
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.disconnect()
  }
}

const settings = words => Object.fromEntries(words.map(word => word.split('=', 2)))

async function create([bootstrap, topic, partitions]) {
  const topics = [{ topic, numPartitions: Number(partitions), replicationFactor: 1 }]
  await within(kafka(bootstrap).admin(), admin => admin.createTopics({ topics }))
  return []
}

async function produce([bootstrap, topic, partition, count, ...words], lines) {
  const { codec = 'none', acks = 'all', idempotent = 'false', ...others } = settings(words)
  const producer = kafka(bootstrap, security(others)).producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    idempotent: idempotent === 'true',
  })
  const messages = []
  while (messages.length < Number(count)) messages.push({ partition: Number(partition), value: await lines() })
  const sent = await within(producer, () =>
    producer.send({ topic, messages, acks: ACKS[acks], compression: CODECS[codec] })
  )
  return (sent || []).map(({ baseOffset }) => `offset ${baseOffset}`)
}

async function consume([bootstrap, topic, partition, offset, count, ...words]) {
  const cluster = new Cluster({
    logger: createLogger({ level: logLevel.WARN, logCreator: logToErrors }),
    socketFactory: defaultSocketFactory(),
    brokers: [bootstrap],
    clientId: 'odradek-interop',
    connectionTimeout: 5000,
    metadataMaxAge: 300000,
    allowAutoTopicCreation: false,
    isolationLevel: 1,
    retry: { retries: 3 },
    authenticationTimeout: 10000,
    reauthenticationThreshold: 10000,
    ...security(settings(words)),
  })
  return within(cluster, async () => {
    await cluster.addTargetTopic(topic)
    const { leader } = cluster.findTopicPartitionMetadata(topic).find(one => one.partitionId === Number(partition))
    const broker = await cluster.findBroker({ nodeId: leader })
    const records = []
    const deadline = Date.now() + TIMEOUT_MS
    let next = BigInt(offset)
    while (records.length < Number(count) && Date.now() < deadline) {
      const partitions = [{ partition: Number(partition), fetchOffset: next.toString(), maxBytes: 1048576 }]
      const { responses } = await broker.fetch({
        replicaId: -1,
        isolationLevel: 1,
        maxWaitTime: 200,
        minBytes: 1,
        maxBytes: 10485760,
        topics: [{ topic, partitions }],
      })
      for (const message of responses[0].partitions[0].messages) {
        if (BigInt(message.offset) < next) continue
        records.push(`record ${message.offset} ${message.value.toString()}`)
        next = BigInt(message.offset) + 1n
      }
    }
    return records
  })
}

async function timestamp([bootstrap, topic, partition, time]) {
  const offsets = await within(kafka(bootstrap).admin(), admin =>
    admin.fetchTopicOffsetsByTimestamp(topic, Number(time))
  )
  return [`offset ${offsets.find(one => one.partition === Number(partition)).offset}`]
}

const COMMANDS = { create, produce, consume, timestamp }

async function main() {
  const input = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  const line = async () => (await input.next()).value
  for (let command = await line(); command !== undefined; command = await line()) {
    const [name, ...words] = command.split(' ')
    try {
      const answer = await COMMANDS[name](words, line)
      process.stdout.write([...answer, 'done', ''].join('\n'))
    } catch (failure) {
      process.stdout.write(`error ${failure.name}: ${String(failure.message).replaceAll('\n', ' ')}\n`)
    }
  }
}

main().then(() => process.exit(0))
