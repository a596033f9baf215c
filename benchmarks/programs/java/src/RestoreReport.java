import java.util.HashSet;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.StateRestoreListener;

/** Reports when the first partition begins to be restored, and each time one is complete. */
final class RestoreReport implements StateRestoreListener {
  private final Set<TopicPartition> open = new HashSet<>();
  private long restored = 0;

  @Override
  public synchronized void onRestoreStart(TopicPartition partition, String store, long start, long end) {
    if (open.isEmpty() && restored == 0) {
      Progress.report(0);
    }
    open.add(partition);
  }

  @Override
  public void onBatchRestored(TopicPartition partition, String store, long end, long count) {}

  @Override
  public synchronized void onRestoreEnd(TopicPartition partition, String store, long total) {
    open.remove(partition);
    restored += total;
    Progress.report(restored);
  }
}
