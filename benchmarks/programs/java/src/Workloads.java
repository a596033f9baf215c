import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/** The workloads of programs/topologies.py; others are in WorkloadsByTime and WorkloadsBySize. */
final class Workloads {
  private static final Serde<String> TEXT = Serdes.String();
  private static final Serde<Long> NUMBER = Serdes.Long();

  static final class Event {
    public long id;
    public String user;
    public String region;
    public long amount;
    public double price;
    public String note;
  }

  static final class Total {
    public long count;
    public long sum;
  }

  static final class Totals {
    public Total first = new Total();
    public Total second = new Total();
    public Total third = new Total();

    public Totals() {}

    Totals(Total first, Total second, Total third) {
      this.first = first == null ? this.first : first;
      this.second = second == null ? this.second : second;
      this.third = third == null ? this.third : third;
    }

    Totals with(Total total, Event event) {
      total.count++;
      total.sum += event.amount;
      return this;
    }
  }

  static final class Customer {
    public String name;
    public long tier;
  }

  static final class Order {
    public long id;
    public String product;
    public long quantity;
  }

  static final class Product {
    public String name;
    public long version;
  }

  static final class PricedOrder {
    public long id;
    public String name;
    public long quantity;
    public long version;
  }

  static Topology build(Map<String, String> job) {
    String workload = job.get("workload");
    String source = job.get("source");
    String sink = job.get("sink");
    int size = Integer.parseInt(job.get("size"));
    StreamsBuilder builder = new StreamsBuilder();
    switch (workload) {
      case "w1-avro" -> filterMapAvro(builder, source, sink, job.get("registry"));
      case "chain" -> WorkloadsBySize.chain(builder, source, sink, size);
      case "relay" -> WorkloadsBySize.relay(builder, source, sink, size);
      case "stores" -> WorkloadsBySize.stores(builder, source, sink, size);
      case "w1-json" -> filterMapJson(builder, source, sink);
      case "w1-string" -> filterMapString(builder, source, sink);
      case "w2", "w2-evicting", "w2-uncached", "w2-many-keys", "w2-exactly-once", "restore" ->
          aggregate(builder, source, sink);
      case "w3", "w3-exactly-once" -> countByUser(builder, source, sink);
      case "w4" -> countByMinute(builder, source, sink);
      case "w5" -> joinTable(builder, source, sink);
      case "w6" -> joinForeignKey(builder, source, sink);
      case "cogroup" -> customersByCogroup(builder, source, sink);
      case "cogroup-joins" -> customersByJoins(builder, source, sink);
      case "sessions" -> WorkloadsByTime.countInSessions(builder, source, sink);
      case "sliding" -> WorkloadsByTime.countInSlidingWindows(builder, source, sink);
      case "suppressed" -> WorkloadsByTime.countUntilClosed(builder, source, sink);
      case "stream-join" -> WorkloadsByTime.joinStreams(builder, source, sink);
      case "versioned-join" -> WorkloadsByTime.joinVersions(builder, source, sink);
      default -> throw new IllegalArgumentException("no such workload: " + workload);
    }
    return builder.build();
  }

  private static void filterMapJson(StreamsBuilder builder, String source, String sink) {
    Serde<Event> events = JsonSerde.of(Event.class);
    builder.stream(source, Consumed.with(TEXT, events))
        .filter((key, event) -> event.amount % 10 != 0)
        .mapValues(
            event -> {
              event.price = event.price * 2;
              return event;
            })
        .to(sink, Produced.with(TEXT, events));
  }

  private static void filterMapAvro(StreamsBuilder builder, String source, String sink, String registry) {
    Serde<GenericRecord> events = RegistryAvroSerde.of(registry);
    builder.stream(source, Consumed.with(TEXT, events))
        .filter((key, event) -> (Long) event.get("amount") % 10 != 0)
        .mapValues(
            event -> {
              event.put("price", (Double) event.get("price") * 2);
              return event;
            })
        .to(sink, Produced.with(TEXT, events));
  }

  private static void filterMapString(StreamsBuilder builder, String source, String sink) {
    builder.stream(source, Consumed.with(TEXT, TEXT))
        .filter((key, line) -> line.charAt(9) != '0')
        .mapValues(line -> line.toUpperCase(Locale.ROOT))
        .to(sink, Produced.with(TEXT, TEXT));
  }

  private static void aggregate(StreamsBuilder builder, String source, String sink) {
    Serde<Event> events = JsonSerde.of(Event.class);
    Serde<Total> totals = JsonSerde.of(Total.class);
    builder.stream(source, Consumed.with(TEXT, events))
        .groupByKey(Grouped.with(TEXT, events))
        .aggregate(
            Total::new,
            (key, event, total) -> {
              total.count++;
              total.sum += event.amount;
              return total;
            },
            Materialized.<String, Total, KeyValueStore<Bytes, byte[]>>as("totals")
                .withKeySerde(TEXT)
                .withValueSerde(totals))
        .toStream()
        .to(sink, Produced.with(TEXT, totals));
  }

  private static void countByUser(StreamsBuilder builder, String source, String sink) {
    Serde<Event> events = JsonSerde.of(Event.class);
    builder.stream(source, Consumed.with(TEXT, events))
        .groupBy((key, event) -> event.user, Grouped.with("by-user", TEXT, events))
        .count(
            Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts")
                .withKeySerde(TEXT)
                .withValueSerde(NUMBER))
        .toStream()
        .to(sink, Produced.with(TEXT, NUMBER));
  }

  private static void countByMinute(StreamsBuilder builder, String source, String sink) {
    Duration minute = Duration.ofMinutes(1);
    Serde<Event> events = JsonSerde.of(Event.class);
    builder.stream(source, Consumed.with(TEXT, events))
        .groupByKey(Grouped.with(TEXT, events))
        .windowedBy(TimeWindows.ofSizeWithNoGrace(minute))
        .count(
            Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("counts")
                .withKeySerde(TEXT)
                .withValueSerde(NUMBER))
        .toStream()
        .to(
            sink,
            Produced.with(
                WindowedSerdes.timeWindowedSerdeFrom(String.class, minute.toMillis()), NUMBER));
  }

  private static void joinTable(StreamsBuilder builder, String source, String sink) {
    Serde<Event> events = JsonSerde.of(Event.class);
    KTable<String, Customer> customers =
        builder.table(
            source + "-table",
            Consumed.with(TEXT, JsonSerde.of(Customer.class)),
            Materialized.<String, Customer, KeyValueStore<Bytes, byte[]>>as("customers"));
    builder.stream(source, Consumed.with(TEXT, events))
        .join(
            customers,
            (event, customer) -> {
              event.note = customer.name;
              return event;
            },
            Joined.with(TEXT, events, null))
        .to(sink, Produced.with(TEXT, events));
  }

  private static void customersByCogroup(StreamsBuilder builder, String source, String sink) {
    Serde<Totals> customers = JsonSerde.of(Totals.class);
    grouped(builder, source + "-1")
        .<Totals>cogroup((key, event, customer) -> customer.with(customer.first, event))
        .cogroup(grouped(builder, source + "-2"), (key, event, customer) -> customer.with(customer.second, event))
        .cogroup(grouped(builder, source + "-3"), (key, event, customer) -> customer.with(customer.third, event))
        .aggregate(Totals::new, stored("customers", customers))
        .toStream()
        .to(sink, Produced.with(TEXT, customers));
  }

  private static void customersByJoins(StreamsBuilder builder, String source, String sink) {
    totals(builder, source + "-1", "first")
        .outerJoin(totals(builder, source + "-2", "second"), (first, second) -> new Totals(first, second, null))
        .outerJoin(
            totals(builder, source + "-3", "third"),
            (both, third) ->
                both == null ? new Totals(null, null, third) : new Totals(both.first, both.second, third))
        .toStream()
        .to(sink, Produced.with(TEXT, JsonSerde.of(Totals.class)));
  }

  private static KTable<String, Total> totals(StreamsBuilder builder, String topic, String store) {
    return grouped(builder, topic)
        .aggregate(
            Total::new,
            (key, event, total) -> {
              total.count++;
              total.sum += event.amount;
              return total;
            },
            stored(store, JsonSerde.of(Total.class)));
  }

  private static KGroupedStream<String, Event> grouped(StreamsBuilder builder, String topic) {
    Serde<Event> events = JsonSerde.of(Event.class);
    return builder.stream(topic, Consumed.with(TEXT, events)).groupByKey(Grouped.with(TEXT, events));
  }

  private static <T> Materialized<String, T, KeyValueStore<Bytes, byte[]>> stored(String name, Serde<T> values) {
    return Materialized.<String, T, KeyValueStore<Bytes, byte[]>>as(name).withKeySerde(TEXT).withValueSerde(values);
  }

  private static void joinForeignKey(StreamsBuilder builder, String source, String sink) {
    Serde<PricedOrder> priced = JsonSerde.of(PricedOrder.class);
    KTable<String, Order> orders =
        builder.table(
            source,
            Consumed.with(TEXT, JsonSerde.of(Order.class)),
            Materialized.<String, Order, KeyValueStore<Bytes, byte[]>>as("orders"));
    KTable<String, Product> products =
        builder.table(
            source + "-table",
            Consumed.with(TEXT, JsonSerde.of(Product.class)),
            Materialized.<String, Product, KeyValueStore<Bytes, byte[]>>as("products"));
    orders
        .join(
            products,
            order -> order.product,
            (order, product) -> {
              PricedOrder result = new PricedOrder();
              result.id = order.id;
              result.name = product.name;
              result.quantity = order.quantity;
              result.version = product.version;
              return result;
            },
            TableJoined.as("priced"),
            Materialized.<String, PricedOrder, KeyValueStore<Bytes, byte[]>>as("priced-orders")
                .withKeySerde(TEXT)
                .withValueSerde(priced))
        .toStream()
        .to(sink, Produced.with(TEXT, priced));
  }

  private Workloads() {}
}
