package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/e2e/trainer"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// measured reports whether the tests of environments run at full size and check figures.
func measured() bool { return os.Getenv("CALLYARD_ENV_MEASURE") != "" }

// rollouts are the results of a rollout generator.
type rollouts struct {
	mu     sync.Mutex
	begun  int
	ended  int
	wrong  []string        // the first few faults
	took   []time.Duration // of each step
	lasted time.Duration   // of all of them, without connecting
}

func (r *rollouts) fault(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.wrong) < faultsKept {
		r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
	}
}

// rate returns the steps per second, and tail the 99th percentile of the step times.
func (r *rollouts) rate() float64 { return float64(len(r.took)) / r.lasted.Seconds() }

func (r *rollouts) tail() time.Duration {
	if len(r.took) == 0 {
		return 0
	}
	slices.Sort(r.took)
	return r.took[len(r.took)*99/100]
}

// stepsEach is the number of steps of an episode in [rollOut].
const stepsEach = 10

// rollOut runs that number of concurrent episodes, each on a separate connection. An episode writes
// its nonces into its list and reads the list, which must contain only those. With
// finish the last step ends it, so that it has a reward.
func rollOut(ctx context.Context, base string, episodes int, finish bool) *rollouts {
	r := &rollouts{begun: episodes}
	conns := make([]*trainer.Conn, episodes)
	gate := make(chan struct{}, 64) // concurrent handshakes
	var work sync.WaitGroup
	for i := range conns {
		gate <- struct{}{}
		work.Go(func() {
			defer func() { <-gate }()
			c, err := trainer.Dial(ctx, base)
			if err != nil {
				r.fault("episode %d: %v", i, err)
				return
			}
			conns[i] = c
		})
	}
	work.Wait()
	began := time.Now()
	for i, c := range conns {
		if c == nil {
			continue
		}
		work.Go(func() {
			took, err := play(c, i, finish)
			r.mu.Lock()
			r.took = append(r.took, took...)
			if err == nil {
				r.ended++
			}
			r.mu.Unlock()
			if err != nil {
				r.fault("episode %d: %v", i, err)
			}
		})
	}
	work.Wait()
	r.lasted = time.Since(began)
	for _, c := range conns {
		if c != nil {
			work.Go(c.Close)
		}
	}
	work.Wait()
	return r
}

// play plays one episode.
func play(c *trainer.Conn, i int, finish bool) (took []time.Duration, err error) {
	if _, err := c.Reset(map[string]any{"seed": i}); err != nil {
		return nil, err
	}
	step := func(tool string, arguments any) (*trainer.Seen, error) {
		began := time.Now()
		seen, err := c.Call(tool, arguments)
		took = append(took, time.Since(began))
		if err == nil && seen.Observation.Error != nil {
			err = fmt.Errorf("%s: %s", tool, seen.Observation.Error.Message)
		}
		return seen, err
	}
	for n := range stepsEach {
		switch {
		case finish && n == stepsEach-1:
			seen, err := step("finish", map[string]any{})
			if err != nil {
				return took, err
			}
			if !seen.Done || seen.Reward == nil {
				return took, fmt.Errorf("it ended with %+v", seen)
			}
		case n%2 == 0:
			if _, err := step("update", map[string]any{"todos": []string{fmt.Sprintf("[%d] nonce-%d-%d. (planned)", n, i, n)}}); err != nil {
				return took, err
			}
		default:
			seen, err := step("list", map[string]any{})
			if err != nil {
				return took, err
			}
			text := string(seen.Observation.Result)
			if own := fmt.Sprintf("nonce-%d-%d.", i, n-1); !strings.Contains(text, own) || strings.Count(text, "nonce-") != strings.Count(text, own) {
				return took, fmt.Errorf("it wrote %s and reads %s", own, text)
			}
		}
	}
	return took, nil
}

// TestThousandsOfEpisodesRunAtOnce runs many episodes with a session each, and their
// generator. When it measures, it compares with OpenEnv's own server and the same generator.
func TestThousandsOfEpisodesRunAtOnce(t *testing.T) {
	episodes := 200
	if measured() {
		episodes = 2000
	}
	e := startEnv(t, "", notesFiles)
	if measured() {
		rollOut(t.Context(), e.url, 200, true) // the first calls compile schemas and conditions
	}
	r := rollOut(t.Context(), e.url, episodes, true)
	if r.ended != r.begun || len(r.wrong) > 0 {
		t.Errorf("of %d episodes %d ended: %s", r.begun, r.ended, strings.Join(r.wrong, "\n"))
	}
	t.Logf("session episodes: %d at once, %d steps, %.0f steps/s, p99 %v", episodes, len(r.took), r.rate(), r.tail().Round(time.Millisecond))
	e.eventually(t, soon, "episodes that are open", func() error {
		if open := e.metric(t, `callyard_episodes{environment="notes"}`); open != 0 {
			return fmt.Errorf("%v are open", open)
		}
		return nil
	})
	if !measured() {
		return
	}
	if r.rate() < 8000 || r.tail() > time.Second {
		t.Errorf("%.0f steps/s with p99 %v, want 8,000 and at most 1 s", r.rate(), r.tail())
	}
	e.stop(t)
	other := rollOut(t.Context(), startOpenEnv(t), episodes, false)
	t.Logf("OpenEnv's own server: %d at once, %d ended, %.0f steps/s, p99 %v %v", episodes, other.ended, other.rate(), other.tail().Round(time.Millisecond), other.wrong)
	if r.rate() < 8*other.rate() {
		t.Errorf("%.0f steps/s are %.1f times those of OpenEnv's own server, want 8", r.rate(), r.rate()/other.rate())
	}
	t.Logf("that is %.1f times as many", r.rate()/other.rate())
}

// metric returns the value of a metric, or 0 if it is missing.
func (e *environments) metric(t testing.TB, name string) float64 {
	t.Helper()
	a, err := send(client(t), e.url, http.MethodGet, "/metrics", "")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(a.body)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	return 0
}

// startOpenEnv starts OpenEnv's own server with the same tools and returns its address.
func startOpenEnv(t *testing.T) string {
	t.Helper()
	python := os.Getenv("CALLYARD_TEST_ENV")
	if python == "" {
		t.Skip("CALLYARD_TEST_ENV names no Python with openenv; scripts/test.sh installs it")
	}
	port := porttest.Port(t)
	cmd := exec.CommandContext(t.Context(), python, filepath.Join(programs.root, "e2e", "clients-env", "server.py"), fmt.Sprint(port))
	cmd.Env = append(cleanEnviron(), "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, endsWithUs()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	url := fmt.Sprintf("http://127.0.0.1:%v", port)
	eventually(t, time.Minute, "OpenEnv's server", func() error {
		_, err := send(client(t), url, http.MethodGet, "/health", "")
		return err
	})
	return url
}
