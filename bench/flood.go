package bench

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"
)

func newFloodClient() *http.Client {
	return &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 20_000, MaxIdleConns: 20_000}}
}

// one sends one call. A response after the end does not count as goodput.
func (f *flood) one(ctx context.Context, client *http.Client, end time.Time) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, bytes.NewReader(f.body))
	if err != nil {
		f.wrong.Add(1)
		return
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(r)
	if err != nil {
		f.wrong.Add(1)
		return
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	switch {
	case err != nil:
		f.wrong.Add(1)
	case resp.StatusCode == http.StatusOK:
		f.all.Add(1)
		if time.Now().Before(end) {
			f.good.Add(1)
		}
	case (resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable) && resp.Header.Get("Retry-After") != "":
		f.refused.Add(1)
	default:
		f.wrong.Add(1)
	}
}
