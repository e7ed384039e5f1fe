// A test of franz-go against a real broker that it starts itself: odradek on the path, or named by ODRADEK.
package orders

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// broker is a process of Odradek's; control is the address of its control server (docs/control.md).
type broker struct {
	bootstrap, control string
}

func start(t *testing.T) *broker {
	t.Helper()
	program := os.Getenv("ODRADEK")
	if program == "" {
		program = "odradek"
	}
	data, err := os.MkdirTemp("", "orders")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "run", "--data", data, "--listen", "127.0.0.1:0",
		"--set", "odradek.profile=test", "--set", "odradek.control.listener=127.0.0.1:0")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		_ = os.RemoveAll(data)
	})
	started := &broker{}
	for lines := bufio.NewScanner(output); lines.Scan(); {
		word, address, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "control":
			started.control = address
		case "ready":
			started.bootstrap = address
			return started
		}
	}
	t.Fatal("the broker did not get ready")
	return nil
}

// ask reads what the control server answers into answer.
func (b *broker) ask(t *testing.T, method, path string, body, answer any) {
	t.Helper()
	content := &bytes.Buffer{}
	if body != nil {
		if err := json.NewEncoder(content).Encode(body); err != nil {
			t.Fatal(err)
		}
	}
	request, err := http.NewRequest(method, fmt.Sprintf("http://%s%s", b.control, path), content)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode >= 400 {
		t.Fatalf("%s %s: %s", method, path, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		t.Fatal(err)
	}
}

type fault struct {
	ID    string `json:"id"`
	Fired int    `json:"fired"`
}

type records struct {
	Records []struct{ Value string }
}

func TestAnOrderIsStoredOnceAndGoneAfterAWeek(t *testing.T) {
	broker := start(t)
	var ignored map[string]any
	broker.ask(t, "POST", "/v1/topics", map[string]any{"topic": "orders"}, &ignored)
	var set fault
	broker.ask(t, "POST", "/v1/faults", map[string]any{
		"api": "Produce", "topic": "orders", "disconnect": true, "when": "after", "times": 1,
	}, &set)

	client, err := kgo.NewClient(kgo.SeedBrokers(broker.bootstrap), kgo.DefaultProduceTopic("orders"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(context.Background(), kgo.StringRecord("one")).FirstErr(); err != nil {
		t.Fatal(err)
	}

	broker.ask(t, "GET", "/v1/faults/"+set.ID, nil, &set)
	if set.Fired != 1 {
		t.Fatalf("the fault fired %d times", set.Fired)
	}
	var stored records
	broker.ask(t, "GET", "/v1/records?topic=orders", nil, &stored)
	if len(stored.Records) != 1 || stored.Records[0].Value != "one" {
		t.Fatalf("stored are %v", stored.Records)
	}
	broker.ask(t, "POST", "/v1/clock", map[string]any{"advance_ms": 8 * 24 * 3600 * 1000}, &ignored)
	var left records
	broker.ask(t, "GET", "/v1/records?topic=orders", nil, &left)
	if len(left.Records) != 0 {
		t.Fatalf("left are %v", left.Records)
	}
}
