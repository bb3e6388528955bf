package fabric

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Until repeats check until it returns no error. If ctx ends first, it returns the last
// error. If ctx has no deadline, Until sets one of two minutes.
func Until(ctx context.Context, check func() error) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, startWithin)
		defer cancel()
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}

// get sends a request to a part with the caller's key.
func (f *Fabric) get(ctx context.Context, url string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("X-API-Key", f.Key)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// answers waits until every front door and approver is ready. A part that started before NATS
// has ended and is restarted.
func (f *Fabric) answers(ctx context.Context) error {
	for _, c := range append(append([]*Container(nil), f.FrontDoors...), f.Approvers...) {
		if err := f.Ready(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// Ready waits until a front door or an approver reports that it is ready after a start. If the
// program refuses its configuration, Ready returns an error with the end of the log at once.
func (f *Fabric) Ready(ctx context.Context, c *Container) error {
	var refused error
	err := Until(ctx, func() error {
		if refused = c.refused(ctx); refused != nil {
			return nil
		}
		if _, err := c.Locate(ctx); err != nil { // another port after a restart
			return err
		}
		status, body, err := f.get(ctx, c.URL()+"/readyz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("/readyz answers %d %.300s", status, body)
		}
		return err
	})
	if err = errors.Join(err, refused); err != nil {
		return fmt.Errorf("waiting for %s: %w%s", c.Name, err, c.tail(context.WithoutCancel(ctx)))
	}
	return nil
}

// serves waits until each running front door reports every server of a worker as ready there.
func (f *Fabric) serves(ctx context.Context, worker string, w Worker) error {
	servers := w.Servers
	if servers == nil {
		servers = demo()
	}
	for id := range servers {
		if err := f.Serves(ctx, worker, id); err != nil {
			return err
		}
	}
	return nil
}

// Serves waits until each running front door reports the server as ready on the worker of this
// name.
func (f *Fabric) Serves(ctx context.Context, worker, server string) error {
	for _, d := range f.FrontDoors {
		if running, _, err := d.Running(ctx); err != nil || !running {
			continue
		}
		err := Until(ctx, func() error {
			status, body, err := f.get(ctx, d.URL()+"/servers/"+server)
			if err != nil {
				return err
			}
			var s struct {
				Workers []struct {
					ID    string `json:"id"`
					State string `json:"initialization_state"`
				} `json:"workers"`
			}
			if err := json.Unmarshal(body, &s); err != nil || status != http.StatusOK {
				return fmt.Errorf("%d %.500s", status, body)
			}
			for _, at := range s.Workers {
				if strings.HasPrefix(at.ID, worker+"_") && at.State == "initialized" {
					return nil
				}
			}
			return fmt.Errorf("%.1000s", body)
		})
		if err != nil {
			return fmt.Errorf("waiting until %s has the server %s of %s: %w%s", d.Name, server, worker, err, f.Part(worker).tail(context.WithoutCancel(ctx)))
		}
	}
	return nil
}
