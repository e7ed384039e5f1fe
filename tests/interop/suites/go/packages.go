// Package packages names the packages under test and what their tests import, so that `go mod tidy` keeps the modules.
package packages

import (
	_ "github.com/IBM/sarama"
	_ "github.com/Shopify/toxiproxy/v2"
	_ "github.com/stretchr/testify/require"
	_ "github.com/twmb/franz-go/pkg/kadm"
	_ "github.com/twmb/franz-go/pkg/kgo"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sync/errgroup"
)
