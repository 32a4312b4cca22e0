//go:build unix

package server

import "github.com/iflowc/iflowc/runtime/kit/metrics"

// vllmNames are the names of vLLM's metrics and the metrics that have their meaning.
// Names of earlier versions of vLLM, which dashboards still use, are among them.
var vllmNames = []metrics.Alias{
	{Name: "vllm:num_requests_running", Of: "iflowc_requests_running"},
	{Name: "vllm:num_requests_waiting", Of: "iflowc_requests_waiting"},
	{Name: "vllm:kv_cache_usage_perc", Of: "iflowc_kv_usage_ratio"},
	{Name: "vllm:gpu_cache_usage_perc", Of: "iflowc_kv_usage_ratio"}, // earlier
	{Name: "vllm:num_preemptions_total", Of: "iflowc_preemptions_total"},
	{Name: "vllm:prompt_tokens_total", Of: "iflowc_prompt_tokens_total"},
	{Name: "vllm:generation_tokens_total", Of: "iflowc_generated_tokens_total"},
	{Name: "vllm:prefix_cache_queries_total", Of: "iflowc_prefix_queries_tokens_total"},
	{Name: "vllm:prefix_cache_hits_total", Of: "iflowc_prefix_hits_tokens_total"},
	{Name: "vllm:spec_decode_num_draft_tokens_total", Of: "iflowc_drafted_tokens_total"},
	{Name: "vllm:spec_decode_num_accepted_tokens_total", Of: "iflowc_accepted_tokens_total"},
	{Name: "vllm:request_success_total", Of: "iflowc_finished_total"},
	{Name: "vllm:time_to_first_token_seconds", Of: "iflowc_time_to_first_token_seconds"},
	{Name: "vllm:inter_token_latency_seconds", Of: "iflowc_inter_token_seconds"},
	{Name: "vllm:time_per_output_token_seconds", Of: "iflowc_inter_token_seconds"}, // earlier
	{Name: "vllm:e2e_request_latency_seconds", Of: "iflowc_request_seconds"},
	{Name: "vllm:request_queue_time_seconds", Of: "iflowc_queue_seconds"},
	{Name: "vllm:request_prefill_time_seconds", Of: "iflowc_prefill_seconds"},
	{Name: "vllm:request_decode_time_seconds", Of: "iflowc_decode_seconds"},
	{Name: "vllm:request_prompt_tokens", Of: "iflowc_request_prompt_tokens"},
	{Name: "vllm:request_generation_tokens", Of: "iflowc_request_generated_tokens"},
}
