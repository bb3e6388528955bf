package console

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

// maxChecked is how many tools one check of the policy page takes: what the API takes.
const maxChecked = 200

// policyPages are the handlers of the policy page.
type policyPages struct{ *Console }

type policyPage struct {
	Asked    string
	Tools    []callyard.PreflightTool
	Ready    bool
	Checked  bool
	TooMany  bool
	Versions []inForce
	Refused  string // why the key may not see the versions; empty where it may
	Rules    string // the text of the policy in force; empty where there is none, or the key may not see it
	Draft    draftView
	Test     testView
}

// inForce is the version of a part of the configuration that a process uses.
type inForce struct{ Process, Part, Version string }

// policy shows which policy the processes use, and what it decides for tools that are named.
func (c policyPages) policy(w http.ResponseWriter, r *http.Request, v Visit) error {
	page := policyPage{Asked: strings.TrimSpace(r.URL.Query().Get("tools")), Draft: draftView{Token: v.Token(Root + "/policy"), Since: "7d"}}
	if err := c.inForce(r.Context(), v, &page); err != nil {
		return c.orKey(w, r, err)
	}
	page.Draft.Text = page.Rules
	names := strings.Fields(page.Asked)
	if page.TooMany = len(names) > maxChecked; len(names) > 0 && !page.TooMany {
		all, err := get[callyard.Preflight](r.Context(), c.Console, v, func(ctx context.Context, client *callyard.ClientWithResponses) (*http.Response, error) {
			return client.Preflight(ctx, &callyard.PreflightParams{Tool: names})
		})
		if err != nil {
			return err
		}
		page.Tools, page.Ready, page.Checked = all.Tools, all.Ready, true
	}
	return c.render(w, v, http.StatusOK, "policy", view{Title: "Policy", Here: Root + "/policy", Page: page})
}

// inForce fills in which policy the processes use, and its text.
func (c policyPages) inForce(ctx context.Context, v Visit, page *policyPage) error {
	status, err := cached(c.cache, v, "configuration", func() (callyard.ConfigurationStatus, error) {
		return get[callyard.ConfigurationStatus](ctx, c.Console, v, func(ctx context.Context, client *callyard.ClientWithResponses) (*http.Response, error) {
			return client.GetConfiguration(ctx)
		})
	})
	switch {
	case schema.KindOf(err) == schema.KindForbidden: // of a tenant that does not see every server
		page.Refused = schema.AsError(err).Detail
	case err != nil:
		return err
	}
	for _, p := range status.Processes {
		for _, part := range p.Parts {
			if part.Part == "policy" {
				page.Versions = append(page.Versions, inForce{p.ID, string(part.Part), part.Version})
			}
		}
	}
	page.Rules, err = rules(ctx, c.Console, v)
	return err
}

// rulesFor is how long the text of the policy serves all who look at it: the state that has it is
// long.
const rulesFor = 10 * time.Second

// rules returns the text of the policy of the front door; empty where it has none, or where the key
// may not see the state.
func rules(ctx context.Context, c *Console, v Visit) (string, error) {
	return cachedFor(c.cache, v, "rules", rulesFor, func() (string, error) {
		a, err := c.ask(ctx, v, func(ctx context.Context, client *callyard.ClientWithResponses) (*http.Response, error) {
			return client.GetState(ctx)
		})
		if kind := schema.KindOf(err); kind == schema.KindForbidden || kind == schema.KindNotFound {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		rules, _ := rawjson.Text(rawjson.Get(rawjson.Get(a.body, "policy"), "text"))
		return rules, nil
	})
}

type setsPage struct {
	Sets []callyard.SetItem
	Set  *callyard.SetDetail // the one that is shown; nil where it is the list
}

// Several reports whether sets are of a tenant and of the installation, so that the list says
// whose each is.
func (p setsPage) Several() bool {
	return slices.ContainsFunc(p.Sets, func(s callyard.SetItem) bool {
		return s.Tenant != nil && schema.TenantID(*s.Tenant) != schema.DefaultTenant
	})
}

// setList shows the sets of tools, or one of them with its tools.
func (c *Console) setList(w http.ResponseWriter, r *http.Request, v Visit) error {
	var page setsPage
	var err error
	title := "Sets"
	if name := r.URL.Query().Get("name"); name != "" {
		set, err := get[callyard.SetDetail](r.Context(), c, v, func(ctx context.Context, client *callyard.ClientWithResponses) (*http.Response, error) {
			return client.GetSet(ctx, name)
		})
		if err != nil {
			return c.orKey(w, r, err)
		}
		page.Set, title = &set, name
	} else if page.Sets, err = c.sets(r.Context(), v); err != nil {
		return c.orKey(w, r, err)
	}
	return c.render(w, v, http.StatusOK, "sets", view{Title: title, Here: Root + "/sets", Page: page})
}
