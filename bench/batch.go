package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// callLines generates the calls of a batch while they are read. It is a request body of
// any length that needs no memory.
type callLines struct {
	next, calls int
	servers     []string
	tool, field string
	pad         string
	one         []byte // the unread rest of the current line
}

// lineSize is the approximate size of a line in bytes.
const lineSize = 240

// newCallLines returns calls of the tool, with a text of about 200 bytes in its
// argument field. The calls rotate over the servers.
func newCallLines(calls int, tool, field string, servers ...string) *callLines {
	return &callLines{calls: calls, servers: servers, tool: tool, field: field, pad: strings.Repeat("x", 150)}
}

func (c *callLines) Read(to []byte) (n int, err error) {
	for n < len(to) {
		if len(c.one) == 0 {
			if c.next == c.calls {
				if n == 0 {
					return 0, io.EOF
				}
				return n, nil
			}
			i := strconv.Itoa(c.next)
			c.one = append(c.one[:0], `{"custom_id":"line-`+i+`","server":"`+c.servers[c.next%len(c.servers)]+`","tool":"`+c.tool+`","arguments":{"`+c.field+`":"hello `+i+` `+c.pad+`"}}`+"\n"...)
			c.next++
		}
		took := copy(to[n:], c.one)
		c.one = c.one[took:]
		n += took
	}
	return n, nil
}

// batchClient is a client of the batches of one front door.
type batchClient struct {
	base string
	http *http.Client
}

func newBatchClient(base string) *batchClient {
	return &batchClient{base: base, http: &http.Client{Transport: &http.Transport{WriteBufferSize: 64 << 10, ReadBufferSize: 64 << 10}}}
}

func (b *batchClient) close() { b.http.CloseIdleConnections() }

// do sends one request and returns the response.
func (b *batchClient) do(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, b.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/x-ndjson")
	}
	resp, err := b.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("sending %s %s: %w", method, path, err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return nil, fmt.Errorf("%s %s answers %d: %s", method, path, resp.StatusCode, text)
	}
	return resp, nil
}

// stream runs a batch and reads its results as they arrive. It returns the time from the
// first byte to the last, and an error unless every call succeeded.
func (b *batchClient) stream(ctx context.Context, calls *callLines) (time.Duration, error) {
	began := time.Now()
	resp, err := b.do(ctx, http.MethodPost, "/batches?stream=true", calls)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	lines, good := 0, 0
	for r := bufio.NewReaderSize(resp.Body, 256<<10); ; lines++ {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("reading the results of a batch: %w", err)
		}
		if bytes.Contains(line, []byte(`"state":"succeeded"`)) {
			good++
		}
	}
	took := time.Since(began)
	if lines != calls.calls || good != lines {
		return took, fmt.Errorf("of %d calls %d have a result and %d succeeded", calls.calls, lines, good)
	}
	return took, nil
}

// submit stores a batch and returns its ID and the time until it was stored.
func (b *batchClient) submit(ctx context.Context, calls *callLines) (id string, took time.Duration, err error) {
	began := time.Now()
	resp, err := b.do(ctx, http.MethodPost, "/batches", calls)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	var handle struct {
		ID    string `json:"id"`
		Calls int    `json:"calls"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&handle); err != nil {
		return "", 0, fmt.Errorf("reading the handle of a batch: %w", err)
	}
	if handle.Calls != calls.calls {
		return "", 0, fmt.Errorf("%d of %d calls were stored", handle.Calls, calls.calls)
	}
	return handle.ID, time.Since(began), nil
}

// waiting returns the number of calls of a batch that have not ended.
func (b *batchClient) waiting(ctx context.Context, id string) (int, error) {
	resp, err := b.do(ctx, http.MethodGet, "/batches/"+id, nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var view struct {
		Counts struct {
			Waiting int `json:"waiting"`
		} `json:"counts"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&view); err != nil {
		return 0, fmt.Errorf("reading how far a batch is: %w", err)
	}
	return view.Counts.Waiting, nil
}

// cancel cancels a batch.
func (b *batchClient) cancel(ctx context.Context, id string) error {
	resp, err := b.do(ctx, http.MethodPost, "/batches/"+id+"/cancel", nil)
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}
