package reward

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/callyard/callyard/pkg/schema"
)

// MaxItems limits the items of one request.
const MaxItems = 1024

// Request is a request for the rewards of items.
type Request struct {
	Preset  string  `json:"preset,omitempty"`
	Weights Weights `json:"weights,omitempty"`
	Items   []Item  `json:"items"`
}

// receivedRequest is a [Request] whose missing members can be told from empty ones.
type receivedRequest struct {
	Request
	Items []receivedItem `json:"items"`
}

type receivedItem struct {
	Item
	Completion *string `json:"completion"`
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
// misspelled one does not silently change a reward. If items lack members, the error is a
// [schema.Error] with a fault for each of them.
func (s *Service) Score(body []byte) ([]byte, error) {
	var q receivedRequest
	in := json.NewDecoder(bytes.NewReader(body))
	in.DisallowUnknownFields()
	if err := in.Decode(&q); err != nil {
		return nil, fmt.Errorf("the request cannot be read: %w", err)
	}
	if len(q.Items) > MaxItems {
		return nil, fmt.Errorf("the request has %d items; send at most %d", len(q.Items), MaxItems)
	}
	scorer, err := s.scorer(&q.Request)
	if err != nil {
		return nil, err
	}
	if err := scorer.missing(q.Items); err != nil {
		return nil, err
	}
	r := Response{Items: make([]Scored, len(q.Items))}
	for i := range q.Items {
		item := &q.Items[i].Item
		if err := item.Check(); err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		if text := q.Items[i].Completion; text != nil {
			item.Completion = *text
		}
		r.Items[i] = scorer.Score(item)
	}
	return json.Marshal(&r)
}

// maxFaults limits the faults that an error lists.
const maxFaults = 20

// missing returns an error that names the members that items lack, or nil. An empty text and an
// empty list are answers and labels: the model wrote nothing, or no tool is expected. A missing one
// is a mistake of the sender, such as a column with another name, and would give a wrong reward.
func (s *Scorer) missing(items []receivedItem) error {
	if s.Weight(Selection) == 0 && s.Weight(Format) == 0 && s.Weight(Arguments) == 0 && s.Weight(Execution) == 0 {
		return nil // the other terms compare facts, and mask items without them
	}
	var faults []schema.Fault
	for i := range items {
		item := &items[i]
		if item.FailureKind != "" {
			continue
		}
		at := fmt.Sprintf("/items/%d", i)
		if item.Completion == nil && item.Calls == nil {
			faults = append(faults, schema.Fault{Pointer: at, Message: "expected the answer of the model: completion (a text) or calls (a list)"})
		}
		if item.Expected == nil && item.ExpectedCalls == nil {
			faults = append(faults, schema.Fault{Pointer: at, Message: "expected the label: expected or expected_calls, which is an empty list if no tool is expected"})
		}
	}
	if len(faults) == 0 {
		return nil
	}
	e := schema.Errorf(schema.KindInvalidArguments, "Items of the request lack the answer or the label, which the weighted terms need; errors lists them.")
	if e.Faults = faults; len(faults) > maxFaults {
		e.Faults = append(faults[:maxFaults:maxFaults], schema.Fault{Message: fmt.Sprintf("and %d more", len(faults)-maxFaults)})
	}
	return e
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
