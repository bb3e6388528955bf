package models_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// messages is a conversation through Anthropic's Messages API.
type messages struct {
	client anthropic.Client
	params anthropic.MessageNewParams
}

func openAnthropic(_ *testing.T, api *httptest.Server) library {
	m := &messages{
		client: anthropic.NewClient(option.WithBaseURL(api.URL), option.WithAPIKey("k"), option.WithHTTPClient(api.Client()), option.WithMaxRetries(0)),
		params: anthropic.MessageNewParams{
			Model: "m", MaxTokens: 1000, System: []anthropic.TextBlockParam{{Text: system}},
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))},
		},
	}
	for _, name := range tools {
		// The library omits a schema whose fields are all zero, and the API refuses such a tool.
		schema := anthropic.ToolInputSchemaParam{Properties: map[string]any{}}
		m.params.Tools = append(m.params.Tools, anthropic.ToolUnionParamOfTool(schema, name))
	}
	return m
}

func (m *messages) ask(ctx context.Context, results []result, stream bool) (reading, error) {
	var blocks []anthropic.ContentBlockParamUnion
	for _, r := range results {
		blocks = append(blocks, anthropic.NewToolResultBlock(r.call.ID, r.text, r.failed))
	}
	if len(blocks) > 0 {
		m.params.Messages = append(m.params.Messages, anthropic.NewUserMessage(blocks...))
	}
	whole, err := m.message(ctx, stream)
	if err != nil {
		return reading{}, err
	}
	m.params.Messages = append(m.params.Messages, whole.ToParam())
	// The library has the parts of the input tokens, whose sum ours reports.
	u := whole.Usage
	is := reading{Stop: string(whole.StopReason), Input: u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens, Output: u.OutputTokens, Cached: u.CacheReadInputTokens}
	for _, block := range whole.Content {
		switch v := block.AsAny().(type) {
		case anthropic.TextBlock:
			is.Text += v.Text
		case anthropic.ToolUseBlock:
			is.Calls = append(is.Calls, call{v.ID, v.Name, string(v.Input)})
		}
	}
	return is, nil
}

func (m *messages) message(ctx context.Context, stream bool) (*anthropic.Message, error) {
	if !stream {
		return m.client.Messages.New(ctx, m.params)
	}
	var whole anthropic.Message
	events := m.client.Messages.NewStreaming(ctx, m.params)
	defer func() { _ = events.Close() }()
	for events.Next() {
		if err := whole.Accumulate(events.Current()); err != nil {
			return nil, err
		}
	}
	return &whole, events.Err()
}
