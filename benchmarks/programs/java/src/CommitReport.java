import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Sees each commit of the consumer, and reports the records committed in the measured topics. */
public final class CommitReport implements ConsumerInterceptor<byte[], byte[]> {
  static final String MEASURED = "measured.topics";

  private final Map<TopicPartition, Long> offsets = new HashMap<>();
  private List<String> measured;

  @Override
  public void configure(Map<String, ?> settings) {
    measured = Arrays.asList(settings.get(MEASURED).toString().split(","));
  }

  @Override
  public ConsumerRecords<byte[], byte[]> onConsume(ConsumerRecords<byte[], byte[]> records) {
    return records;
  }

  @Override
  public void onCommit(Map<TopicPartition, OffsetAndMetadata> committed) {
    committed.forEach(
        (partition, position) -> {
          if (measured.contains(partition.topic())) {
            offsets.put(partition, position.offset());
          }
        });
    long sum = offsets.values().stream().mapToLong(Long::longValue).sum();
    Progress.report(sum / measured.size());
  }

  @Override
  public void close() {}
}
