import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.internals.RocksDBTimestampedStore;

/** Stores in RocksDB that count how often a row is asked for, for runs that are not timed. */
public final class CountingStores extends BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers {
  @Override
  public KeyValueBytesStoreSupplier keyValueStore(DslKeyValueParams params) {
    return new KeyValueBytesStoreSupplier() {
      @Override
      public String name() {
        return params.name();
      }

      @Override
      public KeyValueStore<Bytes, byte[]> get() {
        return new CountedStore(params.name());
      }

      @Override
      public String metricsScope() {
        return "rocksdb";
      }
    };
  }

  private static final class CountedStore extends RocksDBTimestampedStore {
    CountedStore(String name) {
      super(name, "rocksdb");
    }

    @Override
    public synchronized byte[] get(Bytes key) {
      Progress.READS.incrementAndGet();
      return super.get(key);
    }
  }
}
