package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// scriptedUp starts Callyard in one process with n scripted servers, whose entries have more
// members, and waits for all of them. It also returns their names.
func (s *figureEnv) scriptedUp(ctx context.Context, n int, more map[string]any) (*fabric, *batchClient, []string, error) {
	all := make(map[string]any, n)
	names := make([]string, n)
	for i := range n {
		names[i] = fmt.Sprintf("server-%d", i)
		entry := map[string]any{"command": s.scripted, "args": []string{"echo"}, "riskLevel": 1}
		maps.Copy(entry, more)
		all[names[i]] = entry
	}
	servers, dir, err := s.servers(all)
	if err != nil {
		return nil, nil, nil, err
	}
	f, err := launchUp(s.bin, servers, dir)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := f.reach(ctx, AllInOne, "/servers/"+names[0]+"/tools/echo"); err != nil {
		return nil, nil, nil, err
	}
	client := newBatchClient("http://" + f.address)
	err = f.await(ctx, "offering all servers", func() bool { return client.ready(ctx) == n })
	if err != nil {
		client.close()
		return nil, nil, nil, errors.Join(err, f.Close())
	}
	return f, client, names, nil
}

// ready returns the number of servers that accept calls.
func (b *batchClient) ready(ctx context.Context) (n int) {
	resp, err := b.do(ctx, "GET", "/servers", nil)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	var list struct {
		Servers []struct {
			Connected bool `json:"connected"`
		} `json:"servers"`
	}
	if json.NewDecoder(resp.Body).Decode(&list) != nil {
		return 0
	}
	for _, s := range list.Servers {
		if s.Connected {
			n++
		}
	}
	return n
}

const (
	fewServers, manyServers = 5, 500
	serversBatch            = 50_000
)

// serversFigure runs batches over 5 servers and over 500. Each server may use one core, as a
// Node server does. 500 servers with a thread for each core of this machine would measure
// how their runtimes wake threads.
func serversFigure(ctx context.Context, s *figureEnv) error {
	rate := func(servers int) (rate float64, err error) {
		f, client, names, err := s.scriptedUp(ctx, servers, map[string]any{"env": map[string]string{"GOMAXPROCS": "1"}})
		if err != nil {
			return 0, err
		}
		defer func() { client.close(); err = errors.Join(err, f.Close()) }()
		var all []float64
		for round := range s.o.Rounds + 1 {
			took, err := client.stream(ctx, newCallLines(serversBatch, "echo", "text", names...))
			if err != nil {
				return 0, err
			}
			if round > 0 {
				all = append(all, serversBatch/took.Seconds())
			}
		}
		return median(all), nil
	}
	few, err := rate(fewServers)
	if err != nil {
		return err
	}
	many, err := rate(manyServers)
	if err != nil {
		return err
	}
	again, err := rate(fewServers)
	if err != nil {
		return err
	}
	few = (few + again) / 2
	s.info("batch over 5 servers", "%.0f calls/s", few)
	s.info("batch over 500 servers", "%.0f calls/s", many)
	s.check("500 servers ÷ 5", many/few, "", many >= 0.8*few, "≥ 0.8")
	return nil
}

// fairnessFigure measures one caller's calls while a million calls are queued.
func fairnessFigure(ctx context.Context, s *figureEnv) (err error) {
	f, client, end, err := s.warm(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	var load gauge
	measure := func() (Sample, error) {
		return load.measure(ctx, f, batchSize, 1, s.o.Warmup, 5*s.o.Duration)
	}
	idle, err := measure()
	if err != nil {
		return err
	}
	id, took, err := client.submit(ctx, echoes(s.o.calls()))
	if err != nil {
		return err
	}
	before, err := client.waiting(ctx, id)
	if err != nil {
		return err
	}
	began := time.Now()
	busy, err := measure()
	if err != nil {
		return err
	}
	meanwhile := time.Since(began)
	after, err := client.waiting(ctx, id)
	if err != nil {
		return err
	}
	if after == 0 {
		return errors.New("the batch was over before the single calls were: more --calls")
	}
	if err := client.cancel(ctx, id); err != nil {
		return err
	}
	s.info("one caller, idle", "p50 %.2f ms, p99 %.2f ms", idle.P50/1000, idle.P99/1000)
	s.info(fmt.Sprintf("one caller, %d calls queued (stored in %s)", s.o.calls(), took.Round(100*time.Millisecond)), "p50 %.2f ms, p99 %.2f ms", busy.P50/1000, busy.P99/1000)
	s.info("the batch meanwhile", "%.0f calls/s", float64(before-after)/meanwhile.Seconds())
	s.check("p99 ÷ idle p99", busy.P99/idle.P99, "", busy.P99 <= 2*idle.P99, "≤ 2")
	return nil
}

const (
	// The servers of overloadFigure: the concurrent calls, and the duration of each.
	overloadSlots = 16
	overloadSleep = 20 * time.Millisecond
	overloadTimes = 3
)

// overloadFigure sends three times the load that the fabric can handle, for a minute.
func overloadFigure(ctx context.Context, s *figureEnv) (err error) {
	f, client, names, err := s.scriptedUp(ctx, 1, map[string]any{"inFlight": overloadSlots})
	if err != nil {
		return err
	}
	defer func() { client.close(); err = errors.Join(err, f.Close()) }()
	address := "http://" + f.address + "/servers/" + names[0] + "/tools/sleep"
	sleeper, err := NewEndpoint("sleep", address, nil)
	if err != nil {
		return err
	}
	sleeper.fixed = fmt.Appendf(nil, `{"ms":%d}`, overloadSleep.Milliseconds())
	var load gauge
	peak, err := load.measure(ctx, sleeper, 0, 2*overloadSlots, s.o.Warmup, 5*s.o.Duration)
	if err != nil {
		return err
	}
	minute := time.Minute
	if s.o.Quick {
		minute = 10 * time.Second
	}
	flood := &flood{url: address, body: sleeper.fixed, rate: overloadTimes * peak.Rate}
	flood.run(ctx, minute)
	good := float64(flood.good.Load()) / minute.Seconds()
	s.info("peak", "%.0f calls/s", peak.Rate)
	s.info("sent", "%.0f calls/s for %s: %d answered, %d refused, %d otherwise", float64(flood.sent.Load())/minute.Seconds(), minute, flood.all.Load(), flood.refused.Load(), flood.wrong.Load())
	s.check("goodput ÷ peak", good/peak.Rate, "", good >= 0.9*peak.Rate, "≥ 0.9")
	s.check("refusals without 429 or 503 and Retry-After, and other failures", float64(flood.wrong.Load()), "", flood.wrong.Load() == 0, "0")
	return nil
}

// flood sends calls at a fixed rate, without waiting for responses.
type flood struct {
	url  string
	body []byte
	rate float64

	sent, good, all, refused, wrong atomic.Int64
}

// run returns when all calls are answered.
func (f *flood) run(ctx context.Context, d time.Duration) {
	client := newFloodClient()
	defer client.CloseIdleConnections()
	var calls sync.WaitGroup
	began := time.Now()
	for tick := time.NewTicker(2 * time.Millisecond); ; {
		gone := time.Since(began)
		if gone >= d || ctx.Err() != nil {
			tick.Stop()
			break
		}
		for due := int64(gone.Seconds() * f.rate); f.sent.Load() < due; {
			f.sent.Add(1)
			calls.Go(func() { f.one(ctx, client, began.Add(d)) })
		}
		<-tick.C
	}
	calls.Wait()
}
