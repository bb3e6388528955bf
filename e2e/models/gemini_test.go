package models_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"google.golang.org/genai"
)

// generated is a conversation with Gemini, which the library's Chat stores. It sends the chunks
// of a stream back as received, each as a separate content, without empty ones.
type generated struct {
	chat *genai.Chat
}

func openGemini(t *testing.T, api *httptest.Server) library {
	t.Helper()
	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		Backend: genai.BackendGeminiAPI, APIKey: "k", HTTPClient: api.Client(), HTTPOptions: genai.HTTPOptions{BaseURL: api.URL},
	})
	if err != nil {
		t.Fatal(err)
	}
	var declarations []*genai.FunctionDeclaration
	for _, name := range tools {
		declarations = append(declarations, &genai.FunctionDeclaration{Name: name, Parameters: &genai.Schema{Type: genai.TypeObject}})
	}
	chat, err := client.Chats.Create(t.Context(), "m", &genai.GenerateContentConfig{
		SystemInstruction: genai.NewContentFromText(system, genai.RoleUser), Tools: []*genai.Tool{{FunctionDeclarations: declarations}}, MaxOutputTokens: 1000,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &generated{chat}
}

func (g *generated) ask(ctx context.Context, results []result, stream bool) (reading, error) {
	var parts []*genai.Part
	for _, r := range results {
		member := "output"
		if r.failed {
			member = "error"
		}
		part := genai.NewPartFromFunctionResponse(r.call.Name, map[string]any{member: r.text})
		part.FunctionResponse.ID = r.call.ID
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		parts = append(parts, genai.NewPartFromText(prompt))
	}
	var is reading
	if !stream {
		whole, err := g.chat.Send(ctx, parts...)
		if err == nil {
			is.add(whole)
		}
		return is, err
	}
	for chunk, err := range g.chat.SendStream(ctx, parts...) {
		if err != nil {
			return is, err
		}
		is.add(chunk)
	}
	return is, nil
}

// add adds a response, or a chunk of one. Usage is cumulative, so the last one applies.
func (r *reading) add(chunk *genai.GenerateContentResponse) {
	if u := chunk.UsageMetadata; u != nil {
		r.Input, r.Output, r.Cached = int64(u.PromptTokenCount), int64(u.CandidatesTokenCount)+int64(u.ThoughtsTokenCount), int64(u.CachedContentTokenCount)
	}
	if len(chunk.Candidates) == 0 {
		return
	}
	if reason := chunk.Candidates[0].FinishReason; reason != "" {
		r.Stop = string(reason)
	}
	for _, part := range chunk.Candidates[0].Content.Parts {
		if part.Text != "" && !part.Thought {
			r.Text += part.Text
		}
	}
	for _, c := range chunk.FunctionCalls() {
		r.Calls = append(r.Calls, call{c.ID, c.Name, any(c.Args)})
	}
}
