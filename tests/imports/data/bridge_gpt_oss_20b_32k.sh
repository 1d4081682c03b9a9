# Source: NVIDIA-NeMo/Megatron-Bridge at 067f987df,
# examples/model_verification_cards/gpt-oss-20b/card.yaml.
./scripts/training/train.sh --nodes 1 --gpus-per-node 8 \
--recipe gpt_oss_20b_sft_8gpu_h100_bf16_32k_config --mode sft \
--dataset tulu3 \
--pretrained_checkpoint work/model-verification/gpt-oss-20b/imported-megatron/iter_0000000 \
--max_steps 20 --seq_length 32768 \
--tensor_model_parallel_size 4 --context_parallel_size 2 \
--lr 1e-6 --min_lr 0 --warmup_iters 2 \
'dataset.hf_dataset.split="train[:10000]"' \
'dataset.hf_dataset.load_kwargs={revision:"b14afda60f1bbebe55d5d2fa1e4df5042f97f8be"}' \
'++tokenizer.hf_tokenizer_kwargs.revision="6cee5e81ee83917806bbde320786a8fb61efebee"' \
dataset.hf_output_root=work/data/tulu3/gpt-oss-20b-long-context-b14afda60f1b \
dataset.hf_rewrite=true dataset.seed=1234 rng.seed=5678 \
dataset.do_validation=false dataset.hf_validation_proportion=null \
dataset.enable_offline_packing=true \
+dataset.offline_packing_specs.pad_seq_to_mult=4 \
model.sequence_parallel=true model.cp_comm_type=a2a \
model.cross_entropy_loss_fusion=false \
model.recompute_granularity=full model.recompute_method=uniform \
model.recompute_num_layers=1 \
scheduler.lr_decay_iters=20 validation.eval_iters=0 validation.eval_interval=0 \
checkpoint.load=null checkpoint.save=null \
logger.log_interval=1 logger.log_throughput=true \
logger.tensorboard_dir=null
