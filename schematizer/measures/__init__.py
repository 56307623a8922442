"""How much is written to topics, and how far their consumers are: asked of Kafka in the background."""
