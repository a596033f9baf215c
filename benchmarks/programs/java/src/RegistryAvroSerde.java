import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/**
 * Generic records in the wire format of Confluent's serdes, which Maven Central does not have: it asks the registry once
 * for each schema, as they do, and keeps readers and writers.
 */
final class RegistryAvroSerde {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final int HEAD = 5;

  private final HttpClient client = HttpClient.newHttpClient();
  private final String registry;
  private final Map<Integer, GenericDatumReader<GenericRecord>> readers = new HashMap<>();
  private final Map<Schema, GenericDatumWriter<GenericRecord>> writers = new IdentityHashMap<>();
  private final Map<Schema, Integer> numbers = new IdentityHashMap<>();

  static Serde<GenericRecord> of(String registry) {
    RegistryAvroSerde serde = new RegistryAvroSerde(registry);
    return Serdes.serdeFrom((topic, value) -> serde.write(topic, value), (topic, data) -> serde.read(data));
  }

  private RegistryAvroSerde(String registry) {
    this.registry = registry;
  }

  private byte[] write(String topic, GenericRecord value) {
    if (value == null) {
      return null;
    }
    Schema schema = value.getSchema();
    Integer number = numbers.get(schema);
    if (number == null) {
      number = register(topic, schema);
      numbers.put(schema, number);
      writers.put(schema, new GenericDatumWriter<>(schema));
    }
    try {
      ByteArrayOutputStream output = new ByteArrayOutputStream();
      output.write(0);
      output.write(ByteBuffer.allocate(Integer.BYTES).putInt(number).array());
      BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(output, null);
      writers.get(schema).write(value, encoder);
      encoder.flush();
      return output.toByteArray();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private GenericRecord read(byte[] data) {
    if (data == null) {
      return null;
    }
    int number = ByteBuffer.wrap(data, 1, Integer.BYTES).getInt();
    GenericDatumReader<GenericRecord> reader =
        readers.computeIfAbsent(number, asked -> new GenericDatumReader<>(schema(asked)));
    try {
      return reader.read(null, DecoderFactory.get().binaryDecoder(data, HEAD, data.length - HEAD, null));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private int register(String topic, Schema schema) {
    try {
      String body = MAPPER.writeValueAsString(Map.of("schema", schema.toString()));
      String path = "/subjects/" + topic + "-value/versions";
      return MAPPER.readTree(answer(request(path).POST(HttpRequest.BodyPublishers.ofString(body)))).get("id").asInt();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private Schema schema(int number) {
    try {
      String answer = answer(request("/schemas/ids/" + number).GET());
      return new Schema.Parser().parse(MAPPER.readTree(answer).get("schema").asText());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private HttpRequest.Builder request(String path) {
    return HttpRequest.newBuilder(URI.create(registry + path));
  }

  private String answer(HttpRequest.Builder request) throws IOException {
    try {
      return client.send(request.build(), BodyHandlers.ofString()).body();
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }
}
