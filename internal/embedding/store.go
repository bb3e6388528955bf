package embedding

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/search"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// atOnce is the number of texts in one request for vectors of tools.
	atOnce = 64
	// toolsWithin is the timeout of such a request. queryWithin is that of a query, for which a
	// caller waits.
	toolsWithin = 60 * time.Second
	queryWithin = 2 * time.Second
	// pause is the time after a failed query during which no queries are sent.
	pause = 10 * time.Second
)

var retries = backoff.Policy{First: time.Second, Max: time.Minute, Jitter: 0.3}

// Store holds the vectors of tools. Its methods are safe for concurrent use. A nil Store has no
// vectors, and its methods do nothing.
type Store struct {
	client *client
	least  float64
	log    *slog.Logger
	stop   context.CancelFunc
	wait   sync.WaitGroup
	wake   chan struct{}
	size   int // number of texts in the next request; only run uses it

	mu      sync.Mutex
	vectors map[string][]float32    // by the digest of the definition
	wanted  map[string]*schema.Tool // tools without a vector
	failed  error                   // error of the last query
	until   time.Time               // no queries are sent before this time
}

// Open starts to embed the tools of [Store.Want]. It returns nil if no endpoint is configured.
// Close the store to stop it.
func Open(config settings.Embeddings, log *slog.Logger) *Store {
	if !config.Configured() {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Store{
		client: newClient(config), least: config.MinSimilarity, log: log, stop: stop, wake: make(chan struct{}, 1), size: atOnce,
		vectors: make(map[string][]float32), wanted: make(map[string]*schema.Tool),
	}
	s.wait.Go(func() { s.run(ctx) })
	return s
}

// Close stops the background work and waits for it.
func (s *Store) Close() {
	if s == nil {
		return
	}
	s.stop()
	s.wait.Wait()
	s.client.http.CloseIdleConnections()
}

// Want sets the tools whose vectors are needed. Vectors of other tools are dropped. It does not wait.
func (s *Store) Want(tools []*schema.Tool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := make(map[string][]float32, len(tools))
	clear(s.wanted)
	for _, t := range tools {
		if v := s.vectors[t.Digest]; v != nil {
			kept[t.Digest] = v
		} else {
			s.wanted[t.Digest] = t
		}
	}
	s.vectors = kept
	select {
	case s.wake <- struct{}{}:
	default: // already woken
	}
}

// Query returns the meaning of the text of a search. It waits at most 2 s for the endpoint. Errors are
// written for the caller of the search.
func (s *Store) Query(ctx context.Context, text string) (search.Meaning, error) {
	s.mu.Lock()
	failed, until := s.failed, s.until
	some := len(s.vectors) > 0
	s.mu.Unlock()
	switch {
	case time.Now().Before(until):
		return search.Meaning{}, failed
	case !some:
		return search.Meaning{}, fmt.Errorf("no tool has been embedded yet")
	}
	within, cancel := context.WithTimeout(ctx, queryWithin)
	defer cancel()
	v, err := s.client.embed(within, []string{text})
	if ctx.Err() != nil {
		return search.Meaning{}, ctx.Err() // the caller has gone, which is no fault of the endpoint
	}
	if err != nil {
		s.mu.Lock()
		s.failed, s.until = publicError(err), time.Now().Add(pause)
		failed = s.failed
		s.mu.Unlock()
		s.log.Warn("embedding a query failed; the search ranks tools by words only", "error", err, "for", pause)
		return search.Meaning{}, failed
	}
	return search.Meaning{Query: v[0], Of: s.of, Least: s.least}, nil
}

// publicError returns the error for callers. It reveals neither the address of the endpoint nor the
// name of a file.
func publicError(err error) error {
	if status, ok := errors.AsType[*statusError](err); ok {
		return status
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the embeddings endpoint did not answer within %v", queryWithin)
	}
	return errors.New("the embeddings endpoint gave no answer that can be used")
}

// of returns the vector of a tool, or nil if it has none yet.
func (s *Store) of(t *schema.Tool) []float32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vectors[t.Digest]
}

func (s *Store) run(ctx context.Context) {
	failures := 0
	for {
		more, err := s.next(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			delay := retries.Delay(failures)
			failures++
			s.log.Warn("embedding the definitions of tools failed; searches rank these tools by words only", "error", err, "again_in", delay)
			if !sleep.For(delay, ctx.Done()) { // new tools must not shorten the pause
				return
			}
			continue
		}
		if failures = 0; more {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
	}
}

// next embeds some of the tools without a vector, and reports whether there were any.
func (s *Store) next(ctx context.Context) (bool, error) {
	var digests, texts []string
	s.mu.Lock()
	for digest, t := range s.wanted {
		if len(texts) == s.size {
			break
		}
		digests, texts = append(digests, digest), append(texts, search.MeaningText(t))
	}
	s.mu.Unlock()
	if len(texts) == 0 {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, toolsWithin)
	defer cancel()
	all, err := s.client.embed(ctx, texts)
	if err != nil {
		s.size = max(1, len(texts)/2) // one refused text must not block the others
		return false, err
	}
	s.size = min(atOnce, 2*s.size)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, digest := range digests {
		if s.wanted[digest] != nil { // still wanted
			s.vectors[digest] = all[i]
			delete(s.wanted, digest)
		}
	}
	return true, nil
}
