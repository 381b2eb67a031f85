"""Small models of transformers with random weights, and how to run them."""

import copy
import functools
import inspect
import os
import warnings

warnings.simplefilter("ignore")
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
import transformers  # noqa: E402

import pictures  # noqa: E402
import swept  # noqa: E402

torch.set_num_threads(1)
VERSION = int(transformers.__version__.split(".")[0])
VOCABULARY, LENGTH = 99, 48
COMMON = dict(
    vocab_size=VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=3,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256, pad_token_id=0,
    bos_token_id=1, eos_token_id=2)
T5 = dict(vocab_size=VOCABULARY, d_model=64, d_kv=16, d_ff=96, num_layers=3, num_decoder_layers=3,
          num_heads=4, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0, dropout_rate=0.0,
          relative_attention_num_buckets=8, relative_attention_max_distance=20)
DEBERTA = dict(relative_attention=True, position_buckets=8, pos_att_type=["c2p", "p2c"],
               norm_rel_ebd="layer_norm", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
               type_vocab_size=0, share_att_key=True, position_biased_input=False)
NO_DROPOUT = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)

CAUSAL, ENCODER, PAIR = "causal", "encoder", "encoder-decoder"
SWEPT = "swept"  # a base model of any inputs: swept.py
# Name -> (model type, kind of model, fields that differ from COMMON).
MODELS = {
    "llama": ("llama", CAUSAL, {}),
    "mistral": ("mistral", CAUSAL, dict(sliding_window=16)),
    "qwen2": ("qwen2", CAUSAL, {}),
    "qwen3": ("qwen3", CAUSAL, dict(head_dim=32)),
    "phi3": ("phi3", CAUSAL, dict(sliding_window=None)),
    "gemma": ("gemma", CAUSAL, dict(head_dim=32)),
    "gemma2": ("gemma2", CAUSAL, dict(head_dim=32, sliding_window=16, query_pre_attn_scalar=16)),
    "gemma3_text": ("gemma3_text", CAUSAL, dict(
        head_dim=32, sliding_window=16, query_pre_attn_scalar=24,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
    "cohere": ("cohere", CAUSAL, {}),
    "cohere2": ("cohere2", CAUSAL, dict(sliding_window=16)),
    "glm": ("glm", CAUSAL, dict(head_dim=32)),
    "granite": ("granite", CAUSAL, {}),
    "gpt_neox": ("gpt_neox", CAUSAL, dict(num_key_value_heads=None)),
    "gpt_oss": ("gpt_oss", CAUSAL, dict(head_dim=32, sliding_window=16, num_local_experts=2,
                                        num_experts_per_tok=1)),
    "olmo2": ("olmo2", CAUSAL, {}),
    "olmo3": ("olmo3", CAUSAL, dict(sliding_window=16)),
    "smollm3": ("smollm3", CAUSAL, {}),
    "starcoder2": ("starcoder2", CAUSAL, dict(sliding_window=16, residual_dropout=0.0,
                                              embedding_dropout=0.0)),
    "stablelm": ("stablelm", CAUSAL, {}),
    "helium": ("helium", CAUSAL, dict(head_dim=16)),
    "ernie4_5": ("ernie4_5", CAUSAL, {}),
    "exaone4": ("exaone4", CAUSAL, dict(sliding_window=16)),
    "nemotron": ("nemotron", CAUSAL, {}),
    "llama4_text": ("llama4_text", CAUSAL, dict(num_local_experts=2, attention_chunk_size=16,
                                                head_dim=32, intermediate_size_mlp=96)),
    "seed_oss": ("seed_oss", CAUSAL, dict(head_dim=32)),
    "opt": ("opt", CAUSAL, dict(ffn_dim=96, word_embed_proj_dim=64, dropout=0.0)),
    "gpt2": ("gpt2", CAUSAL, dict(n_embd=64, n_head=4, n_layer=3, resid_pdrop=0.0, embd_pdrop=0.0,
                                  attn_pdrop=0.0)),
    "falcon": ("falcon", CAUSAL, dict(new_decoder_architecture=True, num_kv_heads=2)),
    "falcon, alibi": ("falcon", CAUSAL, dict(new_decoder_architecture=False, multi_query=True,
                                             alibi=True, attn_implementation="sdpa")),
    "gptj": ("gptj", CAUSAL, dict(n_embd=64, n_head=4, n_layer=3, rotary_dim=8)),
    "bloom": ("bloom", CAUSAL, dict(n_layer=3, n_head=4, hidden_dropout=0.0)),
    "mpt": ("mpt", CAUSAL, dict(d_model=64, n_heads=4, n_layers=3, max_seq_len=256)),
    "bert": ("bert", ENCODER, NO_DROPOUT),
    "roberta": ("roberta", ENCODER, NO_DROPOUT),
    "modernbert": ("modernbert", ENCODER, dict(local_attention=16, global_attn_every_n_layers=2)),
    "mpnet": ("mpnet", ENCODER, NO_DROPOUT),
    "deberta": ("deberta", ENCODER, {**DEBERTA, "max_relative_positions": 20}),
    "deberta, c2p": ("deberta", ENCODER, {**DEBERTA, "pos_att_type": ["c2p"]}),
    "deberta-v2": ("deberta-v2", ENCODER, DEBERTA),
    "deberta-v2, own projections": ("deberta-v2", ENCODER, {**DEBERTA, "share_att_key": False,
                                                            "position_buckets": -1,
                                                            "max_relative_positions": 20}),
    "t5": ("t5", PAIR, T5),
    "mt5": ("mt5", PAIR, T5),
    "umt5": ("umt5", PAIR, T5),
    "switch_transformers": ("switch_transformers", PAIR, dict(
        **{**T5, "num_layers": 2}, num_sparse_encoder_layers=1, num_sparse_decoder_layers=1,
        # With one expert, rounding chooses no other.
        num_experts=1, expert_capacity=64, router_jitter_noise=0.0)),
    "longt5": ("longt5", PAIR, {**T5, "local_radius": 5}),
    "longt5, transient-global": ("longt5", PAIR, {
        **T5, "local_radius": 5, "global_block_size": 4,
        "encoder_attention_type": "transient-global"}),
    "pop2piano": ("pop2piano", PAIR, T5),
    "bart": ("bart", PAIR, dict(d_model=64, encoder_layers=2, decoder_layers=2,
                                encoder_attention_heads=4, decoder_attention_heads=4,
                                encoder_ffn_dim=96, decoder_ffn_dim=96, dropout=0.0)),
}
# Models that were accepted and failed in their first forward pass, or that are served in part.
for kind in (
        "bigbird_pegasus", "canary", "cohere_asr", "deepseek_v4", "doge", "fastspeech2_conformer",
        "gemma4_audio", "git", "inkling_text", "inkling2_text", "lasr_encoder", "layoutlmv3",
        "maskformer", "nemotron_asr_streaming", "pegasus_x", "pix2struct", "seamless_m4t",
        "seamless_m4t_v2", "speecht5", "t5gemma2", "udop", "vits", "wav2vec2-bert", "wavlm",
        "xlnet"):
    MODELS[kind] = kind, SWEPT, {}
for kind, name, values in (
        ("wav2vec2-bert", "position_embeddings_type", ("relative", "rotary")),
        ("wav2vec2-conformer", "position_embeddings_type", ("relative", "rotary"))):
    for value in values:
        MODELS[f"{kind}, {value}"] = kind, SWEPT, {name: value}
MODELS["layoutlmv3, without page"] = "layoutlmv3", SWEPT, dict(has_spatial_attention_bias=False)
MODELS["sew-d"] = "sew-d", SWEPT, dict(position_buckets=8, max_position_embeddings=32)
MODELS["sew-d, own projections"] = "sew-d", SWEPT, dict(
    position_buckets=-1, max_relative_positions=9, share_att_key=False, pos_att_type=("p2c",))
for name, kind, fields in (
        ("wav2vec2-bert, clipped", "wav2vec2-bert", dict(
            left_max_position_embeddings=5, right_max_position_embeddings=3, add_adapter=True,
            output_hidden_size=64)),
        ("seamless_m4t_v2, chunks", "seamless_m4t_v2", dict(
            speech_encoder_chunk_size=10, speech_encoder_left_chunk_num=1,
            left_max_position_embeddings=5, right_max_position_embeddings=3)),
        ("parakeet_encoder", "parakeet_encoder", dict(max_position_embeddings=512)),
        ("gemma4_audio, both ways", "gemma4_audio", dict(attention_context_right=4)),
        ("xlnet, both ways", "xlnet", dict(bi_data=True, clamp_len=7)),
        ("speecht5, clipped", "speecht5", dict(encoder_max_relative_position=3))):
    MODELS[name] = kind, SWEPT, fields
for name, (kind, fields) in {**{kind: (kind, {}) for kind in pictures.CONFIGS},
                             **pictures.VARIANTS}.items():
    MODELS[name] = kind, SWEPT, fields
if VERSION < 5:
    for kind, name in (("bert", "relative_key"), ("roberta", "relative_key_query"),
                       ("electra", "relative_key_query"), ("albert", "relative_key"),
                       ("albert", "relative_key_query"), ("megatron-bert", "relative_key")):
        MODELS[f"{kind}, {name}"] = kind, ENCODER, {
            **NO_DROPOUT, "position_embedding_type": name, "embedding_size": 64}
# Types that this transformers does not have.
MODELS = {name: entry for name, entry in MODELS.items()
          if entry[1] != SWEPT or entry[0] in swept.CONFIG_MAPPING_NAMES}
CLASSES = {CAUSAL: transformers.AutoModelForCausalLM, ENCODER: transformers.AutoModel,
           PAIR: transformers.AutoModelForSeq2SeqLM}
# Models of one kind that no class of CLASSES knows.
MODEL_CLASSES = {"pop2piano": transformers.Pop2PianoForConditionalGeneration}


@functools.lru_cache(maxsize=2)
def _swept(name):
    kind, _, fields = MODELS[name]
    return swept.build(kind, **fields)


def build(name, **more):
    """A model in float32 that computes attention by transformers' own "eager" code. Its weights are
    large enough for scores to differ. more: further fields of its configuration."""
    kind, form, fields = MODELS[name]
    if form == SWEPT:
        return copy.deepcopy(_swept(name)[0])
    given = {**COMMON, **fields, **more}
    if VERSION < 5 and "rope_parameters" in given:
        given["rope_scaling"] = given.pop("rope_parameters")
    if given["num_key_value_heads"] is None:
        del given["num_key_value_heads"]
    if form == PAIR:
        given = {key: value for key, value in given.items() if key not in COMMON or key in fields}
        given.setdefault("vocab_size", VOCABULARY)
    torch.manual_seed(0)
    own = given.pop("attn_implementation", "eager")
    config = transformers.AutoConfig.for_model(kind, **given)
    model_class = MODEL_CLASSES.get(kind)
    make = model_class._from_config if model_class else CLASSES[form].from_config
    model = make(config, attn_implementation=own).eval()
    with torch.no_grad():
        for parameter_name, x in model.named_parameters():
            if x.dim() == 2:
                x.normal_(0, 1.0 / x.size(1) ** 0.5)
            elif "sinks" in parameter_name:
                x.normal_()
    return model


def tokens(batch=2, length=LENGTH, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, VOCABULARY, (batch, length), generator=generator)


def inputs_of(name, ids, **more):
    """Arguments of the model's forward; encoder-decoders get another target, of as many tokens if
    they are few. Swept models have inputs of their own."""
    form = MODELS[name][1]
    if form == SWEPT:
        return _swept(name)[1]
    target = ids[:, :-7] if ids.size(1) > 16 else ids
    return {"input_ids": ids, **({"decoder_input_ids": target} if form == PAIR else {}), **more}


def padded_inputs(name):
    """Inputs of a swept model with a mask that hides the last third of its entry 0, and the rows of
    a result [batch, rows, ...] that are compared; None where the model takes no such mask."""
    model, inputs = _swept(name)
    main = inputs.get(model.main_input_name)
    if "attention_mask" not in inspect.signature(model.forward).parameters or (
            main is None or main.dim() > 3):
        return None
    mask = torch.ones(main.shape[:2], dtype=torch.long)
    shown = 2 * mask.size(1) // 3
    mask[0, shown:] = 0

    def compared(result):
        keep = torch.ones(result.shape[:2], dtype=torch.bool)
        if result.dim() > 2 and "decoder_input_ids" not in inputs:
            keep[0, result.size(1) * shown // mask.size(1) - 1:] = False
        return keep
    return {**inputs, "attention_mask": mask}, compared


def result(model, **inputs):
    """The logits, or the last hidden state."""
    return swept.first_tensor(model(**inputs))
