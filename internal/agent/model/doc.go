// Package model sends conversations to the APIs of language models and reads their answers.
//
// It owns four wires: OpenAI chat completions (and the many servers that speak them), OpenAI
// Responses, Anthropic messages and Gemini. Each [Wire] writes a request and reads an answer,
// whole or streamed; a stream is put together to the body that the same answer would have
// without streaming. What belongs back into the conversation is kept as the bytes that came:
// Anthropic and Gemini sign parts of an answer for the place where they stood.
//
// It refuses to run tools, to keep a conversation, and to know prices.
//
// Sources: the API references of OpenAI (chat completions, Responses), Anthropic (Messages,
// streaming) and Google (generateContent, thought signatures), as of November 2026.
package model
