# Source: NVIDIA-NeMo/Megatron-Bridge at 067f987df,
# examples/model_verification_cards/qwen3-30b-a3b/card.yaml.
./scripts/training/train.sh --nodes 2 --gpus-per-node 8 \
--recipe qwen3_30b_a3b_sft_8gpu_h100_bf16_config --mode sft \
--dataset tulu3 \
--pretrained_checkpoint work/model-verification/qwen3-30b-a3b/imported-megatron/iter_0000000 \
--max_steps 20 --seq_length 32768 --context_parallel_size 2 \
-tp 8 -pp 1 -ep 8 \
--lr 1e-6 --min_lr 0 --warmup_iters 2 \
'dataset.hf_dataset.split="train[:10000]"' \
'dataset.hf_dataset.load_kwargs={revision:"b14afda60f1bbebe55d5d2fa1e4df5042f97f8be"}' \
'++tokenizer.hf_tokenizer_kwargs.revision="ad44e777bcd18fa416d9da3bd8f70d33ebb85d39"' \
dataset.hf_output_root=work/data/tulu3/qwen3-30b-a3b-long-context-b14afda60f1b \
dataset.hf_rewrite=true dataset.seed=1234 rng.seed=5678 \
dataset.do_validation=false dataset.hf_validation_proportion=null \
dataset.enable_offline_packing=true \
+dataset.offline_packing_specs.pad_seq_to_mult=16 model.cp_comm_type=p2p \
model.cross_entropy_loss_fusion=false model.recompute_granularity=full \
model.recompute_method=uniform model.recompute_num_layers=1 \
scheduler.lr_decay_iters=20 validation.eval_iters=0 validation.eval_interval=0 \
checkpoint.load=null checkpoint.save=null \
logger.log_interval=1 logger.log_throughput=true
