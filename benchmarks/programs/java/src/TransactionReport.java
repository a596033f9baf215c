import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.processor.internals.DefaultKafkaClientSupplier;

/** Sees each commit of a transaction, of which no interceptor is told, and reports its offsets as CommitReport does. */
final class TransactionReport extends DefaultKafkaClientSupplier {
  private final CommitReport report = new CommitReport();

  TransactionReport(String measured) {
    report.configure(Map.of(CommitReport.MEASURED, measured));
  }

  @Override
  public Producer<byte[], byte[]> getProducer(Map<String, Object> settings) {
    return new ReportingProducer(settings);
  }

  private final class ReportingProducer extends KafkaProducer<byte[], byte[]> {
    private final Map<TopicPartition, OffsetAndMetadata> sent = new HashMap<>();

    ReportingProducer(Map<String, Object> settings) {
      super(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    @Override
    public void sendOffsetsToTransaction(
        Map<TopicPartition, OffsetAndMetadata> offsets, ConsumerGroupMetadata group) {
      super.sendOffsetsToTransaction(offsets, group);
      sent.putAll(offsets);
    }

    @Override
    public void commitTransaction() {
      super.commitTransaction();
      report.onCommit(sent);
      sent.clear();
    }
  }
}
