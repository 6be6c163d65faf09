"""Decoding at real size, beside transformers: python real_size.py DRIFT [--shape qwen3-0.6b] [--batches 1 4 8 32] [--device cuda:0]

For each batch size, one after the other: `drift eval --synthetic` in f32 and with matrices in bf16, without a processor and under the
automaton; and transformers `generate` on random weights of the same shape, in f32 and bf16, without a processor and under the
position template of `generate_peer.py`, where a processor sets a mask of the size of the vocabulary. All sample as Qwen3 does and
write `--tokens` tokens a row. Prints tokens per second of decoding, without the prompts: of transformers by the median step, of drift
by all steps. CPU seconds for each token stand beside it, for machines that others use too. `--only drift` leaves transformers out.
On a GPU transformers counts all tokens but the first by the clock, from the first step's logits to the end of a second run; drift has
read all that its steps do once before the clock starts. The start of the GPU and building templates are in no figure. `--batched` adds
transformers' continuous batching (`generate_batch`: a paged cache, graphs) without a processor, which it has none for, by the times of its tokens.
"""

import argparse
import json
import statistics
import subprocess
import time

SHAPES = {
    "qwen3-0.6b": dict(
        model_type="qwen3", vocab_size=151_936, hidden_size=1024, intermediate_size=3072, num_hidden_layers=28,
        num_attention_heads=16, num_key_value_heads=8, head_dim=128, tie_word_embeddings=True,
    ),
    "llama-380m": dict(
        model_type="llama", vocab_size=128_330, hidden_size=1024, intermediate_size=4096, num_hidden_layers=16,
        num_attention_heads=16, num_key_value_heads=8, head_dim=64, tie_word_embeddings=True,
    ),
}
PROMPT_TOKENS = 40
# Of a block, as the automaton of the reference tokenizer forces them.
FORCED_SHARE = 0.4
ALLOWED = range(15, 40)


def drift(options, dtype, batch):
    """Tokens per second and CPU seconds for each token, by processor; and the record of each run."""
    command = [
        options.drift, "eval", "--synthetic", options.shape, "--lp", "none,automaton", "--samples", str(batch),
        "--batch", str(batch), "--max-new-tokens", str(options.tokens), "--dtype", dtype,
        "--threads", str(options.threads), "--device", options.device, "--json",
    ]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    speeds = {}
    for run in json.loads(printed)["runs"]:
        if options.device != "cpu" and run["kernel_steps"] != run["decode_steps"]:
            raise SystemExit(f"drift's kernels did {run['kernel_steps']} of {run['decode_steps']} steps: see its advice")
        spent = run["seconds"]
        seconds = spent["total"] - spent["prefill"] - spent["start"] - spent["templates"]
        tokens = run["generated_tokens"]
        # CPU seconds are not told by phase, and on a GPU not at all.
        share = seconds / spent["total"]
        cpu = None if run["cpu_seconds"] is None else run["cpu_seconds"] * share / tokens
        speeds[run["lp"]] = (tokens / seconds, cpu, run)
    return speeds


class Peer:
    """A random model of transformers."""

    def __init__(self, shape, dtype, threads, device):
        import torch
        import transformers

        torch.set_num_threads(threads)
        torch.manual_seed(0)
        self.torch, self.transformers, self.device = torch, transformers, torch.device(device)
        config = transformers.AutoConfig.for_model(**SHAPES[shape])
        with torch.no_grad():
            model = transformers.AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype))
            self.model = model.eval().to(self.device)
        self.vocab = config.vocab_size

    def speed(self, batch, tokens, processor):
        """Tokens per second by the median step, and CPU seconds for each token."""
        if self.device.type != "cpu":
            # What libraries load and choose at first.
            self.measured(batch, 8, processor)
        return self.measured(batch, tokens, processor)

    def measured(self, batch, tokens, processor):
        """The same, whatever was done before."""
        torch = self.torch
        marks, cpu = [], []
        blocked = torch.ones(self.vocab, dtype=torch.bool)
        blocked[list(ALLOWED)] = False
        template = torch.where(torch.rand(batch, tokens) < FORCED_SHARE, torch.tensor(7), torch.tensor(-1))
        blocked, template = blocked.to(self.device), template.to(self.device)

        class Processor(self.transformers.LogitsProcessor):
            def __call__(self, input_ids, scores):
                marks.append(time.perf_counter())
                cpu.append(time.process_time())
                if not processor:
                    return scores
                token = template[:, len(marks) - 1]
                free = token < 0
                scores = scores.masked_fill(free[:, None] & blocked, -torch.inf)
                forced = torch.full_like(scores, -torch.inf).scatter(1, token.clamp(min=0)[:, None], 0.0)
                return torch.where(free[:, None], scores, forced)

        ids = torch.randint(100, 1000, (batch, PROMPT_TOKENS), device=self.device)
        with torch.inference_mode():
            self.model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, min_new_tokens=tokens, do_sample=True,
                temperature=0.7, top_k=20, top_p=0.8, pad_token_id=0, eos_token_id=None,
                logits_processor=self.transformers.LogitsProcessorList([Processor()]),
            )
        if self.device.type == "cpu":
            step = statistics.median(b - a for a, b in zip(marks, marks[1:]))
        else:
            # The host runs ahead of the device.
            torch.cuda.synchronize()
            step = (time.perf_counter() - marks[0]) / (len(marks) - 1)
        return batch / step, (cpu[-1] - cpu[0]) / (len(cpu) - 1) / batch

    def batched(self, batch, tokens):
        """Tokens per second by continuous batching, from the first token to the last; none and why, if it does not run."""
        torch, transformers = self.torch, self.transformers
        ids = torch.randint(100, 1000, (batch, PROMPT_TOKENS)).tolist()
        # A part of the memory, which drift wants next.
        memory = transformers.ContinuousBatchingConfig(max_memory_percent=0.25)

        def times(tokens):
            config = transformers.GenerationConfig(
                max_new_tokens=tokens, min_new_tokens=tokens, do_sample=True, temperature=0.7, top_k=20, top_p=0.8, pad_token_id=0,
                eos_token_id=-1,
            )
            told = self.model.generate_batch(
                ids, generation_config=config, continuous_batching_config=memory, record_timestamps=True
            )
            if len(told) != batch or any(len(row.generated_tokens) != tokens for row in told.values()):
                raise RuntimeError(f"{len(told)} texts of {sorted({len(row.generated_tokens) for row in told.values()})} tokens")
            return [row.timestamps for row in told.values()]

        try:
            # What libraries load and choose at first.
            times(8)
            marks = times(tokens)
            return batch * (tokens - 1) / (max(row[-1] for row in marks) - min(row[0] for row in marks)), None
        except Exception as error:  # noqa: BLE001 - whatever another project raises, the table goes on
            return None, f"{type(error).__name__}: {error}"
        finally:
            if self.device.type != "cpu":
                torch.cuda.empty_cache()


def weights(shape):
    """Numbers of the layers, and of the LM head."""
    s = SHAPES[shape]
    hidden, heads = s["hidden_size"], s["num_attention_heads"] + s["num_key_value_heads"]
    layer = 2 * heads * s["head_dim"] * hidden + 3 * s["intermediate_size"] * hidden
    return s["num_hidden_layers"] * layer, s["vocab_size"] * hidden


def predicted(none, automaton, shape):
    """How much faster the automaton should be than no processor: where a step takes as long as its weights are read, and where
    it takes as long as they are multiplied. The rows of the LM head that the automaton takes are too few to count."""
    layers, head = weights(shape)
    per_step = [run["generated_tokens"] / run["decode_steps"] for run in (none, automaton)]
    return (layers + head) / layers * per_step[1] / per_step[0], (layers + head) / layers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drift")
    parser.add_argument("--shape", choices=SHAPES, default="qwen3-0.6b")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 4, 8, 32])
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--only", choices=["drift"])
    parser.add_argument("--batched", action="store_true", help="transformers' continuous batching, too")
    parser.add_argument("--dtypes", nargs="+", default=["f32", "bf16"], choices=["f32", "bf16"])
    options = parser.parse_args()
    names = {"f32": "float32", "bf16": "bfloat16"}
    peers = {}
    if options.only is None:
        peers = {dtype: Peer(options.shape, names[dtype], options.threads, options.device) for dtype in options.dtypes}
    print("| batch | type | engine | none, tokens/s | processor, tokens/s | none, CPU s/token | processor, CPU s/token |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for batch in options.batches:
        rows = {}
        for dtype in options.dtypes:
            ours = drift(options, dtype, batch)
            rows[dtype, "drift"] = [ours["none"][:2], ours["automaton"][:2]]
            for name, (_, _, run) in ours.items():
                steps = run["decode_steps"]
                seconds = {phase: round(1e3 * spent / steps, 1) for phase, spent in run["seconds"].items()}
                print(f"<!-- {batch} {dtype} {name}: {steps} steps of {run['generated_tokens']} tokens, {seconds} ms a step -->")
            by_bytes, by_products = predicted(ours["none"][2], ours["automaton"][2], options.shape)
            print(f"<!-- {batch} {dtype}: automaton / none {ours['automaton'][0] / ours['none'][0]:.2f}, "
                  f"by bytes {by_bytes:.2f}, by products {by_products:.2f} -->", flush=True)
            if dtype in peers:
                rows[dtype, "transformers"] = [peers[dtype].speed(batch, options.tokens, p) for p in (False, True)]
        for (dtype, engine), (none, processor) in rows.items():
            cpu = ["-" if seconds is None else f"{seconds:.3f}" for seconds in (none[1], processor[1])]
            print(f"| {batch} | {dtype} | {engine} | {none[0]:.1f} | {processor[0]:.1f} | {cpu[0]} | {cpu[1]} |")
        for dtype, peer in peers.items():
            if options.batched:
                rate, why = peer.batched(batch, options.tokens)
                print(f"| {batch} | {dtype} | transformers, continuous batching | {f'{rate:.1f}' if rate else '-'} | - | - | - |")
                if why:
                    print(f"<!-- {batch} {dtype}: continuous batching: {why} -->", flush=True)
        for dtype, engine in rows:
            if engine == "transformers":
                ours, theirs = rows[dtype, "drift"], rows[dtype, engine]
                by_cpu = ""
                if ours[0][1] and ours[1][1]:
                    by_cpu = f"; by CPU seconds {theirs[0][1] / ours[0][1]:.2f}, {theirs[1][1] / ours[1][1]:.2f}"
                print(f"<!-- {batch} {dtype}: drift / transformers none {ours[0][0] / theirs[0][0]:.2f}, "
                      f"processor {ours[1][0] / theirs[1][0]:.2f}{by_cpu} -->", flush=True)


if __name__ == "__main__":
    main()
