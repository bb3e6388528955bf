package search

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// engine is a search service.
type engine struct {
	name, title string
	address     string // used if the setting engine_url is not given
	needsKey    bool
	request     func(ctx context.Context, base, key, query string, count int) (*http.Request, error)
	// results parses a response.
	results func(body []byte) ([]result, error)
}

func engines() []engine {
	return []engine{
		{
			name: "brave", title: "Brave", address: "https://api.search.brave.com", needsKey: true,
			request: func(ctx context.Context, base, key, query string, count int) (*http.Request, error) {
				return get(ctx, base+"/res/v1/web/search", url.Values{"q": {query}, "count": {strconv.Itoa(count)}}, "X-Subscription-Token", key)
			},
			results: func(body []byte) ([]result, error) {
				var a struct {
					Web struct {
						Results []struct{ Title, URL, Description string }
					}
				}
				err := json.Unmarshal(body, &a)
				var out []result
				for _, r := range a.Web.Results {
					out = append(out, result{r.Title, r.URL, r.Description})
				}
				return out, err
			},
		},
		{
			name: "searxng", title: "SearXNG",
			request: func(ctx context.Context, base, _, query string, _ int) (*http.Request, error) {
				return get(ctx, base+"/search", url.Values{"q": {query}, "format": {"json"}}, "", "")
			},
			results: contents,
		},
		{
			name: "serper", title: "Serper", address: "https://google.serper.dev", needsKey: true,
			request: func(ctx context.Context, base, key, query string, count int) (*http.Request, error) {
				return post(ctx, base+"/search", map[string]any{"q": query, "num": count}, "X-API-KEY", key)
			},
			results: func(body []byte) ([]result, error) {
				var a struct {
					Organic []struct{ Title, Link, Snippet string }
				}
				err := json.Unmarshal(body, &a)
				var out []result
				for _, r := range a.Organic {
					out = append(out, result{r.Title, r.Link, r.Snippet})
				}
				return out, err
			},
		},
		{
			name: "tavily", title: "Tavily", address: "https://api.tavily.com", needsKey: true,
			request: func(ctx context.Context, base, key, query string, count int) (*http.Request, error) {
				return post(ctx, base+"/search", map[string]any{"query": query, "max_results": count}, "Authorization", "Bearer "+key)
			},
			results: contents,
		},
	}
}

// contents parses the results of engines that call the text of a page its content.
func contents(body []byte) ([]result, error) {
	var a struct {
		Results []struct{ Title, URL, Content string }
	}
	err := json.Unmarshal(body, &a)
	var out []result
	for _, r := range a.Results {
		out = append(out, result{r.Title, r.URL, r.Content})
	}
	return out, err
}

func get(ctx context.Context, address string, query url.Values, header, value string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	if header != "" {
		r.Header.Set(header, value)
	}
	return r, nil
}

func post(ctx context.Context, address string, body map[string]any, header, value string) (*http.Request, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(header, value)
	return r, nil
}

// choose returns the engine of the settings and its address.
func choose(name, address, key string) (engine, string, error) {
	for _, e := range engines() {
		if e.name != name {
			continue
		}
		switch {
		case e.needsKey && strings.TrimSpace(key) == "":
			return engine{}, "", fmt.Errorf("the engine %s needs the setting api_key: set it to the key of your account", name)
		case strings.ContainsAny(key, "\r\n"):
			return engine{}, "", fmt.Errorf("the setting api_key has a line break; remove it")
		case !e.needsKey && key != "":
			return engine{}, "", fmt.Errorf("the engine %s has no api_key; remove it", name)
		case address == "" && e.address == "":
			return engine{}, "", fmt.Errorf("the engine %s needs the setting engine_url: set it to the address of your instance, such as https://searx.example.com", name)
		case address == "":
			return e, e.address, nil
		}
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return engine{}, "", fmt.Errorf("the setting engine_url is not the address of an engine; write it as https://searx.example.com, without a password or a query")
		}
		return e, strings.TrimSuffix(address, "/"), nil
	}
	return engine{}, "", fmt.Errorf("there is no engine %.30q; set engine to searxng, brave, tavily or serper", name)
}
