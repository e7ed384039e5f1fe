// A consumer in a group: node member.js BOOTSTRAP TOPIC GROUP KEY=VALUE…. It says what clients/member.py says.

'use strict'

const { Kafka, logLevel } = require('kafkajs')

const say = (...words) => process.stdout.write(`${words.join(' ')}\n`)

async function main([bootstrap, topic, groupId, ...words]) {
  const options = Object.fromEntries(words.map(word => word.split('=', 2)))
  const kafka = new Kafka({
    clientId: 'odradek-interop',
    brokers: [bootstrap],
    logLevel: logLevel.ERROR,
    logCreator: () => ({ label, log }) => process.stderr.write(`${label} ${log.message}\n`),
    retry: { retries: 30, initialRetryTime: 100, maxRetryTime: 1000 },
  })
  const consumer = kafka.consumer({
    groupId,
    sessionTimeout: Number(options.session_ms || 6000),
    rebalanceTimeout: 10000,
    heartbeatInterval: 500,
    maxWaitTimeInMs: 100,
  })
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    const partitions = payload.memberAssignment[topic] || []
    say('assigned', partitions.sort((a, b) => a - b).join(','))
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      say('record', partition, message.offset)
      await consumer.commitOffsets([{ topic, partition, offset: String(BigInt(message.offset) + 1n) }])
      say('committed')
    },
  })
  process.stdin.resume()
  process.stdin.on('end', async () => {
    await consumer.disconnect()
    process.exit(0)
  })
}

main(process.argv.slice(2)).catch(error => {
  say('error', error.message)
  process.exit(1)
})
