package journal

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/embedded"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

func stores(t testing.TB, n int, o Options) []*Store {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	s, err := embedded.Start(embedded.Options{Dir: t.TempDir(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	all := make([]*Store, n)
	for i := range all {
		c, err := bus.Connect(context.Background(), bus.Options{InProcess: s, Name: "test", Log: log})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		o.Log = log
		if all[i], err = Open(context.Background(), c, o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(all[i].Close)
	}
	return all
}

// Owners take the journal from each other all the time, each from its own process as
// it were, and each appends as much as it can for as long as it is let.
func TestNoOwnerAppendsAfterItsSuccessor(t *testing.T) {
	const takeovers = 200
	ss := stores(t, 2, Options{})
	m := &Manifest{Kind: Batch, Principal: schema.Principal{Name: "ann"}, Expires: time.Now().Add(time.Hour)}
	w, err := ss[0].Begin(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var mu sync.Mutex
	acknowledged := map[string]uint64{} // what an owner was told is stored, and its epoch
	var index, seized atomic.Uint64
	var wg sync.WaitGroup
	for i, s := range ss {
		wg.Go(func() {
			for seized.Add(1) <= takeovers {
				o, err := s.Seize(t.Context(), m.ID, fmt.Sprint("fd-", i))
				if schema.KindOf(err) == schema.KindConflict {
					seized.Add(^uint64(0)) // somebody was faster: this was none
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				for {
					n := index.Add(1)
					name := schema.WorkerID(fmt.Sprint("w", n))
					if err = o.Intend(t.Context(), Intent(n, 1, name)); err != nil {
						break
					}
					mu.Lock()
					acknowledged["i"+string(name)] = o.Epoch()
					mu.Unlock()
					if err = o.Results(t.Context(), ResultRecord{Index: n, Outcome: Succeeded, Worker: name}); err != nil {
						break
					}
					mu.Lock()
					acknowledged["r"+string(name)] = o.Epoch()
					mu.Unlock()
					if seized.Load() > takeovers {
						break // nobody is left who would end it
					}
				}
				if err != nil && schema.KindOf(err) != schema.KindConflict {
					t.Error(err)
				}
				o.Close()
			}
		})
	}
	wg.Wait()
	stored := map[string]uint64{}
	epochs := map[uint64]bool{}
	for _, log := range []Log{LogIntents, LogResults} {
		last, err := ss[0].logs.Last(t.Context(), m.ID, log)
		if err != nil {
			t.Fatal(err)
		}
		var epoch, count uint64
		err = ss[0].logs.readAll(t.Context(), m.ID, log, last.Sequence, func(data []byte) error {
			h, _, err := ReadHead(data, log)
			if err != nil {
				return err
			}
			if h.Epoch < epoch {
				t.Errorf("log %d: epoch %d after epoch %d", log, h.Epoch, epoch)
			}
			if h.First != count {
				t.Errorf("log %d: a message begins at record %d, where %d are", log, h.First, count)
			}
			epoch, count = h.Epoch, count+uint64(h.Count)
			epochs[epoch] = true
			name := func(kind string, worker schema.WorkerID) {
				if _, twice := stored[kind+string(worker)]; twice {
					t.Errorf("%s%s is stored twice", kind, worker)
				}
				stored[kind+string(worker)] = h.Epoch
			}
			if log == LogIntents {
				_, err = readIntents(data, func(r *IntentRecord) { name("i", r.Worker) })
			} else {
				_, err = ReadResults(data, func(r *ResultRecord) { name("r", r.Worker) })
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, epoch := range acknowledged {
		if stored[name] != epoch {
			t.Errorf("%s was acknowledged in epoch %d and is stored in epoch %d (0: not at all)", name, epoch, stored[name])
		}
	}
	t.Logf("%d epochs, %d records acknowledged, %d stored", len(epochs), len(acknowledged), len(stored))
	if len(epochs) < takeovers/2 || len(acknowledged) < takeovers/4 {
		t.Errorf("the race was none: %d epochs with appends, %d acknowledged", len(epochs), len(acknowledged))
	}
}

// An append whose reply is lost is found, and is not stored twice.
func TestAnAppendWithoutAReplyIsLookedUp(t *testing.T) {
	s := stores(t, 1, Options{})[0]
	for name, meanwhile := range map[string]func(t *testing.T, w *tail, packet []byte){
		"it was stored": func(t *testing.T, w *tail, packet []byte) {
			if _, err := s.logs.Append(t.Context(), w.id, w.log, packet, w.last); err != nil {
				t.Fatal(err)
			}
		},
		"it was not stored": func(*testing.T, *tail, []byte) {},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Manifest{Kind: Lane, Principal: schema.Principal{Name: "ann"}, Expires: time.Now().Add(time.Hour)}
			if err := s.Create(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			w, err := s.attach(t.Context(), m.ID, LogCalls, 0, true)
			if err != nil {
				t.Fatal(err)
			}
			p := packer{most: s.most}
			if err := p.add(func(b []byte) []byte { return appendCall(b, &CallRecord{CustomID: "c"}) }); err != nil {
				t.Fatal(err)
			}
			// What the tail is about to send arrives first, as after a lost reply.
			h := Head{Log: w.log, Epoch: w.epoch, Writer: w.writer, Number: 1, Count: 1}
			meanwhile(t, w, append(appendHead(nil, &h), p.pieces[0].frames...))
			w.run()
			if first, err := w.append(t.Context(), p.pieces); err != nil || first != 0 {
				t.Errorf("first %d, %v", first, err)
			}
			w.close(t.Context())
			if n, err := s.Accepted(t.Context(), schema.DefaultTenant, m.ID); err != nil || n != 1 {
				t.Errorf("%d calls are stored, %v", n, err)
			}
		})
	}
}
