package embedding

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"

	"github.com/callyard/callyard/internal/settings"
)

const (
	// maxAnswer is the maximum size of a response: 64 vectors of 4,096 numbers with a margin.
	maxAnswer = 16 << 20
	// maxDimensions is the maximum number of dimensions of a vector.
	maxDimensions = 8192
)

// client sends requests to one endpoint. It is safe for concurrent use.
type client struct {
	config settings.Embeddings
	http   *http.Client
}

func newClient(config settings.Embeddings) *client {
	return &client{config: config, http: &http.Client{
		Transport: http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("it redirects requests, which is not followed")
		},
	}}
}

// statusError is a response with a status other than 200.
type statusError struct{ status int }

func (e *statusError) Error() string {
	return fmt.Sprintf("the embeddings endpoint answers %d %s", e.status, http.StatusText(e.status))
}

// embed returns the unit vectors of texts, in order. Errors contain neither the texts nor the response,
// which may repeat them.
func (c *client) embed(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": c.config.Model, "input": texts, "encoding_format": "float"})
	if err != nil {
		return nil, fmt.Errorf("encoding the texts: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(c.config.URL, "/")+"/embeddings", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("asking the embeddings endpoint: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	key, err := c.config.Secret()
	if err != nil {
		return nil, fmt.Errorf("reading the key of the embeddings endpoint: %w", err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking the embeddings endpoint: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, &statusError{resp.StatusCode}
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the answer of the embeddings endpoint: %w", err)
	case len(raw) > maxAnswer:
		return nil, fmt.Errorf("the answer of the embeddings endpoint is longer than %d bytes", maxAnswer)
	}
	return vectors(raw, len(texts))
}

// vectors parses a response with that number of vectors.
func vectors(raw []byte, want int) ([][]float32, error) {
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, errors.New("the answer of the embeddings endpoint has no list of vectors in data")
	}
	all := make([][]float32, want)
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= want || all[d.Index] != nil {
			return nil, fmt.Errorf("the embeddings endpoint answers with a vector of index %d for %d texts", d.Index, want)
		}
		if !normalize(d.Embedding) {
			return nil, fmt.Errorf("the embeddings endpoint answers with a vector that has no direction, or more than %d numbers", maxDimensions)
		}
		all[d.Index] = d.Embedding
	}
	if len(answer.Data) != want {
		return nil, fmt.Errorf("the embeddings endpoint answers with %d vectors for %d texts", len(answer.Data), want)
	}
	return all, nil
}

// normalize scales a vector to length 1, and reports whether that is possible.
func normalize(v []float32) bool {
	if len(v) == 0 || len(v) > maxDimensions {
		return false
	}
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	length := math.Sqrt(sum)
	if length == 0 || math.IsNaN(length) || math.IsInf(length, 0) {
		return false
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / length)
	}
	return true
}
