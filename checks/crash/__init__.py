"""The durability stage: it kills brokers on the wire and checks what they still have."""
