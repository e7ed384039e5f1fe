// Watermill: a router with a handler that copies a topic. Arguments: bootstrap, folder, input, output.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
)

const keyOfRecord = "key"

type copier struct{ kafka.DefaultMarshaler }

// Marshal puts the key of the message, and no headers, into the record.
func (copier) Marshal(topic string, msg *message.Message) (*sarama.ProducerMessage, error) {
	key := sarama.StringEncoder(msg.Metadata.Get(keyOfRecord))
	return &sarama.ProducerMessage{Topic: topic, Key: key, Value: sarama.ByteEncoder(msg.Payload)}, nil
}

func (copier) Unmarshal(record *sarama.ConsumerMessage) (*message.Message, error) {
	msg := message.NewMessage(watermill.NewUUID(), record.Value)
	msg.Metadata.Set(keyOfRecord, string(record.Key))
	return msg, nil
}

func main() {
	brokers, source, target := []string{os.Args[1]}, os.Args[3], os.Args[4]
	logger := watermill.NewStdLogger(false, false)
	consuming := kafka.DefaultSaramaSubscriberConfig()
	consuming.Consumer.Offsets.Initial = sarama.OffsetOldest
	consuming.Consumer.Offsets.AutoCommit.Interval = 200 * time.Millisecond
	consuming.Consumer.Group.Session.Timeout = 6 * time.Second
	consuming.Consumer.Group.Heartbeat.Interval = time.Second
	subscriber, err := kafka.NewSubscriber(kafka.SubscriberConfig{
		Brokers: brokers, ConsumerGroup: "watermill-copy", Unmarshaler: copier{}, OverwriteSaramaConfig: consuming,
	}, logger)
	if err != nil {
		log.Fatal(err)
	}
	producing := kafka.DefaultSaramaSyncPublisherConfig()
	producing.Producer.RequiredAcks = sarama.WaitForAll
	publisher, err := kafka.NewPublisher(kafka.PublisherConfig{
		Brokers: brokers, Marshaler: copier{}, OverwriteSaramaConfig: producing,
	}, logger)
	if err != nil {
		log.Fatal(err)
	}
	router, err := message.NewRouter(message.RouterConfig{}, logger)
	if err != nil {
		log.Fatal(err)
	}
	router.AddHandler("copy", source, subscriber, target, publisher, message.PassthroughHandler)
	log.Fatal(router.Run(context.Background()))
}
