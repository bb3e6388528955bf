package reward

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
)

// MaxItems is the number of items that one request may have.
const MaxItems = 1024

// Request asks for the rewards of items.
type Request struct {
	Preset  string  `json:"preset,omitempty"`
	Weights Weights `json:"weights,omitempty"`
	Items   []Item  `json:"items"`
}

// Response has the rewards, in the order of the items.
type Response struct {
	Items []Scored `json:"items"`
}

// Service computes the rewards of requests. It keeps what it learned about schemas. It is safe
// for concurrent use, and the zero value is ready.
type Service struct {
	mu   sync.Mutex
	kept map[string]*Scorer
}

// maxScorers bounds the scorers that a service keeps.
const maxScorers = 64

// Score reads a request and returns the response as JSON. Members that it does not know are
// an error, so that a misspelled one does not change a reward silently.
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

// scorer returns the scorer of a request.
func (s *Service) scorer(q *Request) (*Scorer, error) {
	key, err := json.Marshal(&Request{Preset: q.Preset, Weights: q.Weights}) // maps are sorted
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
