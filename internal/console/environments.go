package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/episode/tally"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	environmentsPath = Root + "/environments"
	environmentPath  = Root + "/environment"
)

// environmentPages serves the pages of a callyard env, over the env's own API.
type environmentPages struct{ *Console }

type environmentsPage struct {
	At   string
	List tally.List
}

type environmentPage struct {
	D        tally.Detail
	E        *tally.Environment
	Outcomes []counted
	Masked   []counted
	Curve    *curve
}

// counted is a named count.
type counted struct {
	Name  string
	Count int64
}

// countedOf returns the counts of a map, largest first.
func countedOf(of map[string]int64) (all []counted) {
	for name, n := range of {
		all = append(all, counted{name, n})
	}
	slices.SortFunc(all, func(a, b counted) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// list shows the environments with their counts.
func (c environmentPages) list(w http.ResponseWriter, r *http.Request, v Visit) error {
	page := environmentsPage{At: c.o.Environments}
	if err := c.fetch(r.Context(), v, "/environments", &page.List); err != nil {
		return c.orKey(w, r, err)
	}
	return c.render(w, v, http.StatusOK, "environments", view{Title: "Environments", Here: environmentsPath, Live: true, Page: page})
}

// one shows the episodes and the rewards of an environment.
func (c environmentPages) one(w http.ResponseWriter, r *http.Request, v Visit) error {
	name := r.URL.Query().Get("name")
	if name == "" {
		http.Redirect(w, r, environmentsPath, http.StatusSeeOther)
		return nil
	}
	var page environmentPage
	if err := c.fetch(r.Context(), v, "/"+url.PathEscape(name)+"/episodes", &page.D); err != nil {
		return c.orKey(w, r, err)
	}
	page.E = &page.D.Environment
	page.Outcomes, page.Masked, page.Curve = countedOf(page.E.Outcomes), countedOf(page.E.Masked), curveOf(page.D.Curve)
	return c.render(w, v, http.StatusOK, "environment", view{Title: name, Here: environmentsPath, Live: true, Page: page})
}

// known returns an error unless the front door accepts the user's key. It protects pages that make
// no other request to the front door.
func (c *Console) known(ctx context.Context, v Visit) error {
	_, err := current[callyard.Version](ctx, c, v, api.GetVersion)
	return err
}

// fetch sends a request to the env with the user's key, which the front door must accept.
func (c environmentPages) fetch(ctx context.Context, v Visit, path string, to any) error {
	if err := c.known(ctx, v); err != nil {
		return err
	}
	body, err := cached(c.cache, v, "environments "+path, func() ([]byte, error) { return c.read(ctx, v, path) })
	if err == nil {
		if err = json.Unmarshal(body, to); err != nil {
			err = schema.Errorf(schema.KindUnavailable, "The answer of the environments at %s cannot be read: %w", c.o.Environments, err)
		}
	}
	return err
}

func (c environmentPages) read(ctx context.Context, v Visit, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	silent := func(err error) error {
		if errors.Is(err, context.Canceled) {
			return err
		}
		return schema.Errorf(schema.KindUnavailable, "The environments at %s do not answer. Check that callyard env runs, and approver.console.environments: %w", c.o.Environments, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.o.Environments+path, http.NoBody)
	if err != nil {
		return nil, silent(err)
	}
	if v.Key != "" {
		r.Header.Set("Authorization", "Bearer "+v.Key)
	}
	res, err := (&http.Client{Transport: c.o.Transport, CheckRedirect: rejectRedirect}).Do(r)
	if err != nil {
		return nil, silent(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, silent(err)
	}
	var p struct{ Detail string }
	switch _ = json.Unmarshal(body, &p); {
	case res.StatusCode == http.StatusOK:
		return body, nil
	case res.StatusCode == http.StatusUnauthorized:
		return nil, schema.Errorf(schema.KindForbidden, "The environments at %s do not know your API key. Give callyard env the keys of the front door.", c.o.Environments)
	case res.StatusCode == http.StatusForbidden && p.Detail != "":
		return nil, schema.Errorf(schema.KindForbidden, "%s", p.Detail)
	case res.StatusCode == http.StatusNotFound && p.Detail != "":
		return nil, schema.Errorf(schema.KindNotFound, "%s", p.Detail)
	}
	return nil, schema.Errorf(schema.KindUnavailable, "The environments at %s answer with status %d. Is it a callyard env of this version?", c.o.Environments, res.StatusCode)
}
