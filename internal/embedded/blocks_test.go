package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/pkg/bus"
)

// crashedFolder is a data folder with a stream of twenty messages, and no seal.
func crashedFolder(t *testing.T) (dir, folder string) {
	t.Helper()
	dir = t.TempDir()
	s := startIn(t, dir, nil)
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err == nil {
		_, err = js.CreateStream(context.Background(), jetstream.StreamConfig{Name: "things", Subjects: []string{"things"}, Storage: jetstream.FileStorage})
	}
	for i := 0; i < 20 && err == nil; i++ {
		_, err = js.PublishMsg(context.Background(), &nats.Msg{Subject: "things", Header: nats.Header{"N": {fmt.Sprint(i)}}, Data: make([]byte, 500)})
	}
	nc.Close()
	if err = errors.Join(err, s.Close(), os.Remove(filepath.Join(dir, "seal.json"))); err != nil {
		t.Fatal(err)
	}
	return dir, filepath.Join(dir, "nats", "jetstream", "$G", "streams", "things")
}

func startIn(t *testing.T, dir string, refused **embedded.DamageError) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(embedded.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil && (refused == nil || !errors.As(err, refused)) {
		t.Fatal(err)
	}
	return s
}

// A file where the server needs a folder.
func TestStartSaysWhyTheServerGaveUp(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nats"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := embedded.Start(embedded.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "not a directory") || !strings.Contains(err.Error(), filepath.Join(dir, "nats")) {
		t.Errorf("the error is %v", err)
	}
}

// A crash leaves no seal, and perhaps a half written end of the file that was written: all
// else that cannot be read is damage.
func TestDamageIsFoundAfterACrash(t *testing.T) {
	for name, c := range map[string]struct {
		damage      func(folder string, block []byte) error
		first, last uint64 // of the messages that may be lost; 0, 0 for no damage
		files       bool   // it is found, and not in messages
	}{
		"nothing": {damage: func(string, []byte) error { return nil }},
		"the last message is truncated": {damage: func(folder string, block []byte) error {
			return errors.Join(os.Remove(folder+"/msgs/index.db"), os.WriteFile(folder+"/msgs/1.blk", block[:len(block)-7], 0o600))
		}},
		"a changed byte in the middle": {damage: func(folder string, block []byte) error {
			block[len(block)/20*9+200] ^= 1
			return errors.Join(os.Remove(folder+"/msgs/index.db"), os.WriteFile(folder+"/msgs/1.blk", block, 0o600))
		}, first: 10, last: 10},
		"a wrong length": {damage: func(folder string, block []byte) error {
			block[len(block)/20*4+1] ^= 0xff
			return errors.Join(os.Remove(folder+"/msgs/index.db"), os.WriteFile(folder+"/msgs/1.blk", block, 0o600))
		}, first: 5, last: 5},
		"a truncated block with an intact index": {damage: func(folder string, block []byte) error {
			return os.WriteFile(folder+"/msgs/1.blk", block[:len(block)/2], 0o600)
		}, first: 11, last: 20},
		"a missing block":     {damage: func(folder string, _ []byte) error { return os.Remove(folder + "/msgs/1.blk") }, first: 1, last: 20},
		"no configuration":    {damage: func(folder string, _ []byte) error { return os.Remove(folder + "/meta.inf") }, files: true},
		"a bad configuration": {damage: func(folder string, _ []byte) error { return os.WriteFile(folder+"/meta.sum", []byte("no"), 0o600) }, files: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir, folder := crashedFolder(t)
			block, err := os.ReadFile(folder + "/msgs/1.blk")
			if err == nil {
				err = c.damage(folder, block)
			}
			if err != nil {
				t.Fatal(err)
			}
			var refused *embedded.DamageError
			s := startIn(t, dir, &refused)
			if s != nil {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if c.last > 0 || c.files {
					t.Error("it starts")
				}
				return
			}
			if len(refused.Damages) != 1 || refused.Damages[0].Stream != "things" || refused.Damages[0].First != c.first || refused.Damages[0].Last != c.last || c.last == 0 && !c.files {
				t.Errorf("%v", refused)
			}
		})
	}
}

// A first start that ends while it makes the streams leaves some of them, and nothing is in them.
func TestKilledFirstStartIsNotReportedAsDamage(t *testing.T) {
	for name, used := range map[string]bool{"never used": false, "used": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := startIn(t, dir, nil)
			nc, err := nats.Connect("", nats.InProcessServer(s))
			if err != nil {
				t.Fatal(err)
			}
			js, err := jetstream.New(nc)
			for _, stream := range []string{bus.StreamJournals, bus.StreamCalls} {
				if err == nil {
					_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: stream, Subjects: []string{stream}, Storage: jetstream.FileStorage})
				}
			}
			if used && err == nil {
				_, err = js.Publish(t.Context(), bus.StreamCalls, nil)
			}
			nc.Close()
			// The journals are always without messages, and made only half.
			half := filepath.Join(dir, "nats", "jetstream", "$G", "streams", bus.StreamJournals, "meta.sum")
			if err = errors.Join(err, s.Close(), os.Remove(filepath.Join(dir, "seal.json")), os.Remove(half)); err != nil {
				t.Fatal(err)
			}
			var refused *embedded.DamageError
			switch s = startIn(t, dir, &refused); {
			case s == nil && !used:
				t.Errorf("it does not start: %v", refused)
			case s == nil && len(refused.Damages) != len(bus.JournalStreams())-2:
				t.Errorf("%v", refused)
			case s != nil && used:
				t.Error("it starts without the streams")
			}
			if s != nil {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
