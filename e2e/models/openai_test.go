package models_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

func openAI(api *httptest.Server) openai.Client {
	return openai.NewClient(option.WithBaseURL(api.URL), option.WithAPIKey("k"), option.WithHTTPClient(api.Client()), option.WithMaxRetries(0))
}

var anyObject = map[string]any{"type": "object"}

// chat is a conversation through Chat Completions.
type chat struct {
	client openai.Client
	params openai.ChatCompletionNewParams
}

func openChat(_ *testing.T, api *httptest.Server) library {
	c := &chat{client: openAI(api), params: openai.ChatCompletionNewParams{
		Model: "m", MaxCompletionTokens: openai.Int(1000),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(system), openai.UserMessage(prompt)},
	}}
	for _, name := range tools {
		c.params.Tools = append(c.params.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: name, Parameters: anyObject}))
	}
	return c
}

func (c *chat) ask(ctx context.Context, results []result, stream bool) (reading, error) {
	for _, r := range results {
		c.params.Messages = append(c.params.Messages, openai.ToolMessage(r.text, r.call.ID))
	}
	whole, err := c.complete(ctx, stream)
	if err != nil {
		return reading{}, err
	}
	if len(whole.Choices) != 1 {
		return reading{}, errors.New("there is not one choice")
	}
	choice := whole.Choices[0]
	c.params.Messages = append(c.params.Messages, choice.Message.ToParam())
	is := reading{
		Text: choice.Message.Content, Stop: choice.FinishReason,
		Input: whole.Usage.PromptTokens, Output: whole.Usage.CompletionTokens, Cached: whole.Usage.PromptTokensDetails.CachedTokens,
	}
	for _, one := range choice.Message.ToolCalls {
		is.Calls = append(is.Calls, call{one.ID, one.Function.Name, one.Function.Arguments})
	}
	return is, nil
}

func (c *chat) complete(ctx context.Context, stream bool) (*openai.ChatCompletion, error) {
	if !stream {
		return c.client.Chat.Completions.New(ctx, c.params)
	}
	params := c.params
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	var whole openai.ChatCompletionAccumulator
	chunks := c.client.Chat.Completions.NewStreaming(ctx, params)
	defer func() { _ = chunks.Close() }()
	for chunks.Next() {
		if !whole.AddChunk(chunks.Current()) {
			return nil, errors.New("the accumulator refuses a chunk: " + chunks.Current().RawJSON())
		}
	}
	return &whole.ChatCompletion, chunks.Err()
}

// conversed is a conversation through the Responses API.
type conversed struct {
	client openai.Client
	params responses.ResponseNewParams
	input  responses.ResponseInputParam
}

func openResponses(_ *testing.T, api *httptest.Server) library {
	c := &conversed{
		client: openAI(api),
		params: responses.ResponseNewParams{
			Model: "m", Instructions: openai.String(system), MaxOutputTokens: openai.Int(1000), Store: openai.Bool(false),
			Include: []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
		},
		input: responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage(prompt, responses.EasyInputMessageRoleUser)},
	}
	for _, name := range tools {
		c.params.Tools = append(c.params.Tools, responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{Name: name, Parameters: anyObject}})
	}
	return c
}

func (c *conversed) ask(ctx context.Context, results []result, stream bool) (reading, error) {
	for _, r := range results {
		item := responses.ResponseInputItemParamOfFunctionCallOutput(r.text)
		item.OfFunctionCallOutput.CallID = openai.String(r.call.ID)
		c.input = append(c.input, item)
	}
	c.params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: c.input}
	whole, err := c.respond(ctx, stream)
	if err != nil {
		return reading{}, err
	}
	is := reading{
		Text: whole.OutputText(), Stop: string(whole.Status),
		Input: whole.Usage.InputTokens, Output: whole.Usage.OutputTokens, Cached: whole.Usage.InputTokensDetails.CachedTokens,
	}
	if whole.IncompleteDetails.Reason != "" {
		is.Stop = whole.IncompleteDetails.Reason
	}
	for _, item := range whole.Output {
		switch v := item.AsAny().(type) {
		case responses.ResponseOutputMessage:
			p := v.ToParam()
			c.input = append(c.input, responses.ResponseInputItemUnionParam{OfOutputMessage: &p})
		case responses.ResponseReasoningItem:
			p := v.ToParam()
			c.input = append(c.input, responses.ResponseInputItemUnionParam{OfReasoning: &p})
		case responses.ResponseFunctionToolCall:
			p := v.ToParam()
			c.input = append(c.input, responses.ResponseInputItemUnionParam{OfFunctionCall: &p})
			is.Calls = append(is.Calls, call{v.CallID, v.Name, v.Arguments})
		default:
			return reading{}, errors.New("an item of the type " + item.Type)
		}
	}
	return is, nil
}

// respond returns the response. The accumulator of this library is for WebSockets, so respond
// joins the pieces of a stream, and checks them against the last event.
func (c *conversed) respond(ctx context.Context, stream bool) (*responses.Response, error) {
	if !stream {
		return c.client.Responses.New(ctx, c.params)
	}
	var whole *responses.Response
	text, arguments := "", ""
	events := c.client.Responses.NewStreaming(ctx, c.params)
	defer func() { _ = events.Close() }()
	for events.Next() {
		switch e := events.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			text += e.Delta
		case responses.ResponseFunctionCallArgumentsDeltaEvent:
			arguments += e.Delta
		case responses.ResponseCompletedEvent:
			whole = &e.Response
		case responses.ResponseIncompleteEvent:
			whole = &e.Response
		}
	}
	if err := events.Err(); err != nil {
		return nil, err
	}
	if whole == nil {
		return nil, errors.New("the stream has no response")
	}
	said := ""
	for _, item := range whole.Output {
		if item.Type == "function_call" {
			said += item.AsFunctionCall().Arguments
		}
	}
	if text != whole.OutputText() || arguments != said {
		return nil, errors.New("the pieces are not those of the response: " + text + arguments)
	}
	return whole, nil
}
