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

// maxChecked is the maximum number of tools per check. It equals the limit of the API.
const maxChecked = 200

// policyPages serves the policy page.
type policyPages struct{ *Console }

type policyPage struct {
	Asked    string
	Tools    []callyard.PreflightTool
	Ready    bool
	Checked  bool
	TooMany  bool
	Versions []activeVersion
	Refused  string // the reason why the key may not see the versions; empty if it may
	Rules    string // the text of the effective policy; empty if there is none or the key may not see it
	Draft    draftView
	Test     testView
}

// activeVersion is the version of a part of the configuration in a process.
type activeVersion struct{ Process, Part, Version string }

// policy shows the policy of each process, and its decisions for the given tools.
func (c policyPages) policy(w http.ResponseWriter, r *http.Request, v Visit) error {
	page := policyPage{Asked: strings.TrimSpace(r.URL.Query().Get("tools")), Draft: draftView{Token: v.Token(Root + "/policy"), Since: "7d"}}
	if err := c.inForce(r.Context(), v, &page); err != nil {
		return c.orKey(w, r, err)
	}
	page.Draft.Text = page.Rules
	names := strings.Fields(page.Asked)
	if page.TooMany = len(names) > maxChecked; len(names) > 0 && !page.TooMany {
		all, err := get[callyard.Preflight](r.Context(), c.Console, v, with(api.Preflight, &callyard.PreflightParams{Tool: names}))
		if err != nil {
			return err
		}
		page.Tools, page.Ready, page.Checked = all.Tools, all.Ready, true
	}
	return c.render(w, v, http.StatusOK, "policy", view{Title: "Policy", Here: Root + "/policy", Page: page})
}

// inForce fills in the policy versions of the processes, and the text of the policy.
func (c policyPages) inForce(ctx context.Context, v Visit, page *policyPage) error {
	status, err := current[callyard.ConfigurationStatus](ctx, c.Console, v, api.GetConfiguration)
	switch {
	case schema.KindOf(err) == schema.KindForbidden: // the key's tenant does not see every server
		page.Refused = schema.AsError(err).Detail
	case err != nil:
		return err
	}
	for _, p := range status.Processes {
		for _, part := range p.Parts {
			if part.Part == "policy" {
				page.Versions = append(page.Versions, activeVersion{p.ID, string(part.Part), part.Version})
			}
		}
	}
	page.Rules, err = rules(ctx, c.Console, v)
	return err
}

// rulesFor is the lifetime of the cached policy text. All users share it, because the state that
// contains it is large.
const rulesFor = 10 * time.Second

// rules returns the text of the front door's policy. It is empty if there is none, or if the key
// may not see the state.
func rules(ctx context.Context, c *Console, v Visit) (string, error) {
	return cachedFor(c.cache, v, "rules", rulesFor, func() (string, error) {
		a, err := c.ask(ctx, v, with0(api.GetState))
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
	Set  *callyard.SetDetail // the set that is shown; nil for the list
}

// Several reports whether the list has sets of both a tenant and the installation, so that it must
// show the owner of each.
func (p setsPage) Several() bool {
	return slices.ContainsFunc(p.Sets, func(s callyard.SetItem) bool {
		return s.Tenant != nil && schema.TenantID(*s.Tenant) != schema.DefaultTenant
	})
}

// setList shows the tool sets, or one of them with its tools.
func (c *Console) setList(w http.ResponseWriter, r *http.Request, v Visit) error {
	var page setsPage
	var err error
	title := "Sets"
	if name := r.URL.Query().Get("name"); name != "" {
		set, err := get[callyard.SetDetail](r.Context(), c, v, with(api.GetSet, name))
		if err != nil {
			return c.orKey(w, r, err)
		}
		page.Set, title = &set, name
	} else if page.Sets, err = c.sets(r.Context(), v); err != nil {
		return c.orKey(w, r, err)
	}
	return c.render(w, v, http.StatusOK, "sets", view{Title: title, Here: Root + "/sets", Page: page})
}
