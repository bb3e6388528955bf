// Package modeltest is a test server that implements the APIs of language models:
// OpenAI chat completions and Responses, Anthropic Messages and Gemini, streamed or not.
//
// A [Script] defines the model's answer to each request. The server is strict: it rejects with
// status 400 the requests that the vendors reject, such as a call that is not followed by its result,
// a missing signature, or two tools with the same name. [Server.Refused] returns the reasons.
//
// Sources of the rules: the API references of the vendors, as of November 2026.
package modeltest
