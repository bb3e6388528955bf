package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

const (
	smallBatch = 10_000
	// directLanes is the concurrency at which the direct client is fastest, and
	// bridgeLanes the concurrency for peers.
	directLanes = 64
	bridgeLanes = 50
	batchSize   = 200 // bytes of the message of a direct call, as in a line of a batch
)

// up starts Callyard in one process.
func (s *figureEnv) up(ctx context.Context) (*fabric, *batchClient, error) {
	return s.start(ctx, startAllInOne)
}

// three starts Callyard in three processes.
func (s *figureEnv) three(ctx context.Context) (*fabric, *batchClient, error) {
	return s.start(ctx, startThree)
}

func (s *figureEnv) start(ctx context.Context, start func(ctx context.Context, bin binaries, servers, dir string) (*fabric, error)) (*fabric, *batchClient, error) {
	servers, dir, err := s.servers(everything(s.command))
	if err != nil {
		return nil, nil, err
	}
	f, err := start(ctx, s.bin, servers, dir)
	if err != nil {
		return nil, nil, err
	}
	return f, newBatchClient("http://" + f.address), nil
}

// servers writes a servers file with the entries into a separate folder.
func (s *figureEnv) servers(entries any) (servers, dir string, err error) {
	if dir, err = s.folder(); err != nil {
		return "", "", err
	}
	servers = filepath.Join(dir, "servers.json")
	return servers, dir, writeServers(servers, entries)
}

// warm starts Callyard in three processes and runs a small batch. end stops them.
func (s *figureEnv) warm(ctx context.Context) (f *fabric, client *batchClient, end func() error, err error) {
	if f, client, err = s.three(ctx); err != nil {
		return nil, nil, nil, err
	}
	end = func() error {
		client.close()
		return f.Close()
	}
	if _, err := client.stream(ctx, echoes(smallBatch)); err != nil {
		return nil, nil, nil, errors.Join(err, end())
	}
	return f, client, end, nil
}

// echoes returns calls of the everything server.
func echoes(n int) *callLines { return newCallLines(n, toolName, "message", serverID) }

// batchFigure runs batches of 10,000 calls one after the other, in turn with the
// direct client and with the endpoints that the options name.
func batchFigure(ctx context.Context, s *figureEnv) (err error) {
	f, client, err := s.up(ctx)
	if err != nil {
		return err
	}
	defer func() { client.close(); err = errors.Join(err, f.Close()) }()
	direct, err := startSession(ctx, s.command, s.o.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, direct.Close()) }()
	var load gauge
	measure := func(t Target, lanes int) (float64, error) {
		sample, err := load.measure(ctx, t, batchSize, lanes, s.o.Warmup, s.o.Duration)
		if err == nil && sample.Calls == 0 {
			err = fmt.Errorf("%s answered no call", t.Name())
		}
		return sample.Rate, err
	}
	rates := map[string][]float64{}
	for round := range s.o.Rounds + 1 {
		one, err := measure(direct, directLanes)
		if err != nil {
			return err
		}
		// As long as the direct client ran: after 10,000 calls the server's JIT has compiled
		// less than after ten times as many.
		var took time.Duration
		batches := 0
		for ; batches == 0 || took < s.o.Warmup+s.o.Duration; batches++ {
			one, err := client.stream(ctx, echoes(smallBatch))
			if err != nil {
				return err
			}
			took += one
		}
		if round == 0 {
			continue // skip the first run, which a JIT slows down
		}
		rates["direct"] = append(rates["direct"], one)
		rates["batch"] = append(rates["batch"], float64(batches*smallBatch)/took.Seconds())
		for _, peer := range s.peers {
			rate, err := measure(peer, bridgeLanes)
			if err != nil {
				return err
			}
			rates[peer.Name()] = append(rates[peer.Name()], rate)
		}
	}
	batch, one := median(rates["batch"]), median(rates["direct"])
	s.info("direct thin client, stdio", "%.0f calls/s", one)
	s.info("batch of 10,000, results streamed, synced", "%.0f calls/s", batch)
	s.check("batch ÷ direct client", batch/one, "", batch >= 0.6*one, "≥ 0.6")
	for _, peer := range s.peers {
		rate := median(rates[peer.Name()])
		s.info(peer.Name()+" at c=50", "%.0f calls/s", rate)
		s.check("batch ÷ "+peer.Name(), batch/rate, "", batch >= 8*rate, "≥ 8")
	}
	return nil
}

const (
	memoryMost = 150 << 20
	// flatMost limits the ratio of the time per call of the largest batch to that of a
	// batch a tenth as large. Small batches include start and end effects.
	flatMost = 1.15
)

// flatFigure runs batches of 10,000, 100,000 and a million calls in three processes,
// and compares the time per call and the memory of the processes.
func flatFigure(ctx context.Context, s *figureEnv) (err error) {
	f, client, end, err := s.warm(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	var each []float64
	for _, n := range s.sizes() {
		took, err := client.stream(ctx, echoes(n))
		if err != nil {
			return err
		}
		each = append(each, took.Seconds()*1e6/float64(n))
		s.info(fmt.Sprintf("batch of %d, three processes", n), "%.0f calls/s, %.1f µs for each call", 1e6/each[len(each)-1], each[len(each)-1])
	}
	last := each[len(each)-1] / slices.Min(each)
	s.check("time for each call, the largest batch ÷ the quickest", last, "", last <= flatMost, fmt.Sprintf("≤ %.2f", flatMost))
	for _, c := range f.children {
		peak, ok := peakMemory(c.pid())
		switch {
		case !ok:
			s.info(c.name+", memory", "cannot be read here")
		case c.name == "nats":
			s.info(c.name+", most memory", "%d MiB", peak>>20)
		default:
			s.check(c.name+", most memory", float64(peak>>20), "MiB", peak < memoryMost, "< 150 MiB")
		}
	}
	return nil
}

// sizes returns the batch sizes of flatFigure: up to a million, or fewer if the options say so.
func (s *figureEnv) sizes() (sizes []int) {
	for n := smallBatch; n <= s.o.calls(); n *= 10 {
		sizes = append(sizes, n)
	}
	return sizes
}

// ingestFigure stores a million calls, and compares that with a bare publisher of atomic
// batches at the same NATS server. The calls name a server that does not exist, so that
// none of them runs.
func ingestFigure(ctx context.Context, s *figureEnv) (err error) {
	f, client, err := s.three(ctx)
	if err != nil {
		return err
	}
	defer func() { client.close(); err = errors.Join(err, f.Close()) }()
	n := s.o.calls()
	bare := func() (float64, error) {
		took, err := bareIngest(ctx, f.nats, min(n, 200_000), lineSize)
		return float64(min(n, 200_000)) / took.Seconds(), err
	}
	before, err := bare()
	if err != nil {
		return err
	}
	id, took, err := client.submit(ctx, newCallLines(n, toolName, "message", "nobody-has-it"))
	if err != nil {
		return err
	}
	if err := client.cancel(ctx, id); err != nil {
		return err
	}
	after, err := bare()
	if err != nil {
		return err
	}
	rate, publisher := float64(n)/took.Seconds(), (before+after)/2
	s.info("bare publisher, atomic batches of 1,000, synced", "%.0f messages/s", publisher)
	s.info(fmt.Sprintf("%d calls stored over HTTP, synced", n), "%.0f calls/s, %s in all", rate, took.Round(10*time.Millisecond))
	s.check("ingest ÷ bare publisher", rate/publisher, "", rate >= 0.5*publisher, "≥ 0.5")
	return nil
}
