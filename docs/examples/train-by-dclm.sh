#!/bin/sh
# Training by DCLM's code on an export, and its evaluation. The commands are those of DCLM's and EleutherAI's pages of
# 2026-11-27; they were not run here. Needs GPUs: the scale 411m_1x takes 26 hours of an H100 by DCLM's README.
set -eu

scrapy export crawls/0002 --out pretraining --format jsonl.zst

git clone https://github.com/mlfoundations/dclm && cd dclm && pip install -r requirements.txt
cd rust_processing/tokshuf-rs
cargo run --release -- --input path/to/pretraining/documents --local-cell-dir cells --output tokens \
    --tokenizer EleutherAI/gpt-neox-20b --seqlen 2049 --wds-chunk-size 8192 --num-local-cells 512
cd ../.. && python -m open_lm.utils.make_wds_manifest --data-dir rust_processing/tokshuf-rs/tokens
# describe the folder and its manifest.jsonl in exp_data/datasets/tokenized/ours.json, a copy of another one there
torchrun --nproc-per-node 8 -m training.train -- --scale 411m_1x --data-config exp_data/datasets/tokenized/ours.json \
    --logs logs --attn-name torch_attn
python tools/eval_expdb.py --num_gpus 8 --no_skip --output_dir exp_data/evals/ \
    --eval_yaml eval/mmlu_and_lowvar.yaml -f "uuid=THE_MODEL'S" --skip_perplexity

# downstream tasks of a model in the format of Hugging Face's transformers, by lm-evaluation-harness
pip install 'lm_eval[hf]'
lm-eval run --model hf --model_args pretrained=path/to/model --tasks hellaswag,arc_easy,piqa --output_path results
