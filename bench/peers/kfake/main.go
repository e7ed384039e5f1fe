// A kfake broker on one address, with its data on disk: kfake HOST:PORT DIRECTORY.
package main

import (
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatalf("usage: %s HOST:PORT DIRECTORY", os.Args[0])
	}
	address, data := os.Args[1], os.Args[2]
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.ListenFn(func(network, _ string) (net.Listener, error) { return net.Listen(network, address) }),
		kfake.DataDir(data),
		kfake.AllowAutoTopicCreation(),
		kfake.DefaultNumPartitions(1),
	)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("ready %s\n", address)

	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGINT, syscall.SIGTERM)
	<-stopped
	cluster.Close()
}
