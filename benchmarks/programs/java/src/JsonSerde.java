import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/** JSON objects of plain classes, by Jackson. */
final class JsonSerde {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  static <T> Serde<T> of(Class<T> type) {
    return Serdes.serdeFrom(
        (topic, value) -> {
          try {
            return value == null ? null : MAPPER.writeValueAsBytes(value);
          } catch (IOException error) {
            throw new UncheckedIOException(error);
          }
        },
        (topic, bytes) -> {
          try {
            return bytes == null ? null : MAPPER.readValue(bytes, type);
          } catch (IOException error) {
            throw new UncheckedIOException(error);
          }
        });
  }

  private JsonSerde() {}
}
