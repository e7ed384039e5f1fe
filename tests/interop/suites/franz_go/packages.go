// Package packages names the packages under test, so that `go mod tidy` keeps their modules.
package packages

import (
	_ "github.com/twmb/franz-go/pkg/kadm"
	_ "github.com/twmb/franz-go/pkg/kgo"
)
