package reward

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
)

// MaxItems limits the items of one request.
const MaxItems = 1024

// Request is a request for the rewards of items.
type Request struct {
	Preset  string  `json:"preset,omitempty"`
	Weights Weights `json:"weights,omitempty"`
	Items   []Item  `json:"items"`
}

// Response holds the rewards, in the order of the items.
type Response struct {
	Items []Scored `json:"items"`
}

// Service computes the rewards of requests. It caches scorers and their parsed schemas. It is safe
// for concurrent use. The zero value is ready to use.
type Service struct {
	mu   sync.Mutex
	kept map[string]*Scorer
}

// maxScorers limits the cached scorers.
const maxScorers = 64

// Score parses a request and returns the response as JSON. Unknown members are an error, so that a
// misspelled one does not silently change a reward.
func (s *Service) Score(body []byte) ([]byte, error) {
	var q Request
	in := json.NewDecoder(bytes.NewReader(body))
	in.DisallowUnknownFields()
	if err := in.Decode(&q); err != nil {
		return nil, fmt.Errorf("the request cannot be read: %w", err)
	}
	if len(q.Items) > MaxItems {
		return nil, fmt.Errorf("the request has %d items; send at most %d", len(q.Items), MaxItems)
	}
	scorer, err := s.scorer(&q)
	if err != nil {
		return nil, err
	}
	r := Response{Items: make([]Scored, len(q.Items))}
	for i := range q.Items {
		if err := q.Items[i].Check(); err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		r.Items[i] = scorer.Score(&q.Items[i])
	}
	return json.Marshal(&r)
}

// scorer returns the scorer for a request.
func (s *Service) scorer(q *Request) (*Scorer, error) {
	key, err := json.Marshal(&Request{Preset: q.Preset, Weights: q.Weights}) // Marshal sorts map keys
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.kept[string(key)]; known != nil {
		return known, nil
	}
	made, err := New(q.Preset, q.Weights)
	if err != nil {
		return nil, err
	}
	if s.kept == nil || len(s.kept) >= maxScorers {
		s.kept = make(map[string]*Scorer)
	}
	s.kept[string(key)] = made
	return made, nil
}
