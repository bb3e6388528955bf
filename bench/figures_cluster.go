package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// clusterFigure runs batches over a cluster of three NATS servers on this machine,
// which stores each record three times, and compares them with batches over one server.
func clusterFigure(ctx context.Context, s *figureEnv) error {
	rates := func(start func(context.Context) (*fabric, *batchClient, error)) (all []float64, err error) {
		f, client, err := start(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { client.close(); err = errors.Join(err, f.Close()) }()
		if _, err := client.stream(ctx, echoes(smallBatch)); err != nil {
			return nil, err
		}
		for _, n := range []int{smallBatch, 10 * smallBatch} {
			took, err := client.stream(ctx, echoes(n))
			if err != nil {
				return nil, err
			}
			all = append(all, float64(n)/took.Seconds())
		}
		return all, nil
	}
	one, err := rates(s.three)
	if err != nil {
		return err
	}
	three, err := rates(s.cluster)
	if err != nil {
		return err
	}
	for i, n := range []int{smallBatch, 10 * smallBatch} {
		s.info(fmt.Sprintf("batch of %d, one NATS server", n), "%.0f calls/s", one[i])
		s.info(fmt.Sprintf("batch of %d, three NATS servers, each record three times", n), "%.0f calls/s (%.2f of one server)", three[i], three[i]/one[i])
	}
	return nil
}

// cluster starts three NATS servers, a worker and a front door.
func (s *figureEnv) cluster(ctx context.Context) (*fabric, *batchClient, error) {
	servers, dir, err := s.servers(everything(s.command))
	if err != nil {
		return nil, nil, err
	}
	addresses, err := freeAddresses(7)
	if err != nil {
		return nil, nil, err
	}
	f := &fabric{address: addresses[6], nats: addresses[0]}
	var routes, urls []string
	for i := range 3 {
		routes = append(routes, fmt.Sprintf("%q", "nats://"+addresses[3+i]))
		urls = append(urls, "nats://"+addresses[i])
	}
	for i := range 3 {
		name := fmt.Sprintf("nats-%d", i)
		text := fmt.Sprintf("server_name: %s\nlisten: %q\nmax_payload: 8MB\njetstream { store_dir: %q, sync_interval: always }\ncluster { name: bench, listen: %q, routes: [%s] }\n",
			name, addresses[i], filepath.Join(dir, name), addresses[3+i], strings.Join(routes, ", "))
		file := filepath.Join(dir, name+".conf")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("writing the settings of nats-server: %w", err), f.Close())
		}
		if err := f.start(name, s.bin.nats, dir, nil, "--config", file); err != nil {
			return nil, nil, errors.Join(err, f.Close())
		}
	}
	for i := range 3 {
		if err := f.await(ctx, "listening", func() bool { return listens(ctx, addresses[i]) }); err != nil {
			return nil, nil, errors.Join(err, f.Close())
		}
	}
	config := filepath.Join(dir, "callyard.yaml")
	text := fmt.Sprintf("nats:\n  url: %q\n  replicas: 3\n", strings.Join(urls, ","))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("writing the configuration: %w", err), f.Close())
	}
	if err := f.start("worker", s.bin.worker, dir, nil, "--config", config, "--servers", servers, "--log-level", "warn"); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	if err := f.start("front door", s.bin.frontdoor, dir, nil, "--config", config, "--listen", f.address, "--log-level", "warn"); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	if _, err := f.ready(ctx, ThreeProcesses); err != nil {
		return nil, nil, err
	}
	return f, newBatchClient("http://" + f.address), nil
}
