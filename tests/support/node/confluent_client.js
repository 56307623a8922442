// Calls Confluent's client as a test asks: a JSON object on each line of the input, and one on each line of the output.
import { createInterface } from "node:readline";
import { AvroDeserializer, AvroSerializer, SchemaRegistryClient, SerdeType } from "@confluentinc/schemaregistry";

const client = SchemaRegistryClient.newClient(JSON.parse(process.argv[2]));

const serdes = {
  async serialize(topic, value, config) {
    const message = await new AvroSerializer(client, SerdeType.VALUE, config).serialize(topic, value);
    return message.toString("hex");
  },
  async deserialize(topic, message, config) {
    return await new AvroDeserializer(client, SerdeType.VALUE, config).deserialize(topic, Buffer.from(message, "hex"));
  },
};

async function answer({ method, args }) {
  try {
    return { value: await (serdes[method] ?? client[method].bind(client))(...args) };
  } catch (error) {
    return { error: String(error), status: error.status ?? null, errorCode: error.errorCode ?? null };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(await answer(JSON.parse(line))) + "\n");
}
