// Prints the changes of a table, one JSON object a line, up to the present end of its topic.
// node read_topic.js BOOTSTRAP REGISTRY_URL TOPIC. It needs kafkajs, avsc, and lz4js for the batches' compression.
"use strict";
const avro = require("avsc");
const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = require("kafkajs");
const lz4 = require("lz4js");

const [bootstrap, registry, topic] = process.argv.slice(2);
const types = new Map();

CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async (encoder) => Buffer.from(lz4.compress(encoder.buffer)),
  decompress: async (batch) => Buffer.from(lz4.decompress(batch)),
});

// An Avro long has 64 bits, and a number of JavaScript's 53.
const long = avro.types.LongType.__with({
  fromBuffer: (bytes) => bytes.readBigInt64LE(),
  toBuffer: (value) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(value);
    return bytes;
  },
  fromJSON: BigInt,
  toJSON: String,
  isValid: (value) => typeof value === "bigint",
  compare: (one, other) => (one < other ? -1 : one > other ? 1 : 0),
});

async function typeOf(id) {
  if (!types.has(id)) {
    const answer = await (await fetch(`${registry}/schemas/ids/${id}`)).json();
    const schema = withoutLogicalTypes(JSON.parse(answer.schema));
    types.set(id, avro.Type.forSchema(schema, { registry: { long } }));
  }
  return types.get(id);
}

const PRIMITIVES = new Set(["boolean", "int", "long", "float", "double", "bytes", "string"]);

// Timestamps, dates and decimals stay as Avro stores them, and each long is ours.
function withoutLogicalTypes(schema) {
  if (Array.isArray(schema)) return schema.map(withoutLogicalTypes);
  if (schema === null || typeof schema !== "object") return schema;
  if (!("name" in schema) && PRIMITIVES.has(schema.type)) return schema.type;
  return Object.fromEntries(Object.entries(schema).map(([name, part]) => [name, withoutLogicalTypes(part)]));
}

// Confluent's wire format: 0, the schema's id in 4 bytes, then Avro.
async function decode(message) {
  return (await typeOf(message.readUInt32BE(1))).fromBuffer(message.subarray(5));
}

// JSON has no bytes, no NaN and no infinities; its numbers have any number of digits.
function json(value) {
  if (value === null || value === undefined) return "null";
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number") return Number.isFinite(value) ? JSON.stringify(value) : JSON.stringify(String(value));
  if (Buffer.isBuffer(value)) return JSON.stringify(`0x${value.toString("hex")}`);
  if (Array.isArray(value)) return `[${value.map(json).join(",")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const fields = Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}:${json(item)}`);
  return `{${fields.join(",")}}`;
}

async function main() {
  const kafka = new Kafka({ brokers: bootstrap.split(","), logLevel: logLevel.ERROR });
  const consumer = kafka.consumer({ groupId: `read-topic-${process.pid}`, readUncommitted: false });
  const admin = kafka.admin();
  await Promise.all([consumer.connect(), admin.connect()]);
  const left = new Map();
  for (const { partition, high } of await admin.fetchTopicOffsets(topic)) {
    if (BigInt(high) > 0n) left.set(partition, BigInt(high));
  }
  await consumer.subscribe({ topic, fromBeginning: true });
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
      if (BigInt(payload.lastOffset) + 1n >= left.get(payload.partition)) left.delete(payload.partition);
      if (left.size === 0) resolve();
    });
    consumer.run({
      eachMessage: async ({ message }) => {
        // A value of null is a tombstone.
        const change = message.value === null ? { op: null, after: null } : await decode(message.value);
        process.stdout.write(`${json({ key: await decode(message.key), op: change.op, after: change.after })}\n`);
      },
    });
  });
  await Promise.all([consumer.disconnect(), admin.disconnect()]);
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
