#!/usr/bin/env python3
"""Small random folders of encoders and encoder-decoders beyond the published ones, with what transformers computes.

Usage: encoders.py GENERATOR OUT [PATTERN] [--seed N]. GENERATOR is the folder of the conformance generator
(hf_tiny.py), whose functions make the folders; PATTERN is a regular expression over family-variant. check.py then
compares a folder. Folders of families that spec/outside.yaml names must be refused.
"""

import argparse
import os
import re
import sys

args = argparse.ArgumentParser(description=__doc__)
args.add_argument("generator")
args.add_argument("out")
args.add_argument("pattern", nargs="?", default="")
args.add_argument("--seed", type=int, default=3)
args = args.parse_args()
sys.path.insert(0, args.generator)

from hftiny import families, make  # noqa: E402
from hftiny.families import ENCODER as E, SEQ2SEQ as S, _ed, _enc, _t5  # noqa: E402

families.VARIANTS.clear()


def A(family, name, task, model, config, tokenizer, params, **kw):
    """Adds a variant."""
    families._add(family, name, task, model, config, tokenizer, "", params, **kw)


# bert
A("bert","c",E,"BertForSequenceClassification","BertConfig","bert",_enc(num_labels=3))
A("bert","reg",E,"BertForSequenceClassification","BertConfig","bert",_enc(num_labels=1,problem_type="regression"))
A("bert","multi",E,"BertForSequenceClassification","BertConfig","bert",_enc(num_labels=4,problem_type="multi_label_classification",hidden_act="gelu_new"))
A("bert","tok",E,"BertForTokenClassification","BertConfig","bert",_enc(num_labels=5))
A("bert","rel",E,"BertForMaskedLM","BertConfig","bert",_enc(hidden_act="relu",type_vocab_size=3))
A("bert","relkey",E,"BertForMaskedLM","BertConfig","bert",_enc(position_embedding_type="relative_key"))
A("bert","untied",E,"BertForMaskedLM","BertConfig","bert_cased",_enc(tie_word_embeddings=False,hidden_act="silu"))
A("bert","pre",E,"BertForPreTraining","BertConfig","bert",_enc())
A("bert","qa",E,"BertForQuestionAnswering","BertConfig","bert",_enc())
A("bert","nsp",E,"BertForNextSentencePrediction","BertConfig","bert",_enc())
A("bert","h5",E,"BertModel","BertConfig","bert",_enc(hidden=60,heads=5,inter=100),sentence_embedding=True)
A("roberta","b",E,"RobertaModel","RobertaConfig","roberta",_enc(type_vocab_size=1),sentence_embedding=True)
A("roberta","cls",E,"RobertaForSequenceClassification","RobertaConfig","roberta",_enc(type_vocab_size=1,num_labels=3))
A("roberta","tok",E,"RobertaForTokenClassification","RobertaConfig","roberta",_enc(type_vocab_size=1,num_labels=3))
A("xlm_roberta","a",E,"XLMRobertaForMaskedLM","XLMRobertaConfig","xlmr",_enc(type_vocab_size=1,layer_norm_eps=1e-5))
A("xlm_roberta","b",E,"XLMRobertaModel","XLMRobertaConfig","xlmr",_enc(type_vocab_size=1,layer_norm_eps=1e-5),sentence_embedding=True)
A("xlm_roberta","cls",E,"XLMRobertaForSequenceClassification","XLMRobertaConfig","xlmr",_enc(type_vocab_size=1,num_labels=2))
A("xlm_roberta_xl","a",E,"XLMRobertaXLForMaskedLM","XLMRobertaXLConfig","xlmr",_enc(type_vocab_size=1))
A("xlm_roberta_xl","cls",E,"XLMRobertaXLForSequenceClassification","XLMRobertaXLConfig","xlmr",_enc(type_vocab_size=1,num_labels=3))
A("camembert","a",E,"CamembertForMaskedLM","CamembertConfig","xlmr",_enc(type_vocab_size=1))
A("camembert","cls",E,"CamembertForSequenceClassification","CamembertConfig","xlmr",_enc(type_vocab_size=1,num_labels=3))
D=dict(dim=64,hidden_dim=160,n_layers=2,n_heads=4,max_position_embeddings=130)
A("distilbert","cls",E,"DistilBertForSequenceClassification","DistilBertConfig","distilbert",D|dict(num_labels=3))
A("distilbert","sin",E,"DistilBertForMaskedLM","DistilBertConfig","distilbert",D|dict(sinusoidal_pos_embds=True,activation="relu"))
A("distilbert","base",E,"DistilBertModel","DistilBertConfig","distilbert",D,sentence_embedding=True)
A("albert","a",E,"AlbertForMaskedLM","AlbertConfig","albert",_enc(layers=3,embedding_size=32))
A("albert","same",E,"AlbertForMaskedLM","AlbertConfig","albert",_enc(layers=3,embedding_size=64,hidden_act="gelu"))
A("albert","cls",E,"AlbertForSequenceClassification","AlbertConfig","albert",_enc(layers=3,embedding_size=32,num_labels=3))
A("albert","base",E,"AlbertModel","AlbertConfig","albert",_enc(layers=3,embedding_size=32),sentence_embedding=True)
A("albert","inner2",E,"AlbertModel","AlbertConfig","albert",_enc(layers=3,embedding_size=32,inner_group_num=2))
A("albert","groups",E,"AlbertModel","AlbertConfig","albert",_enc(layers=4,embedding_size=32,num_hidden_groups=2))
A("albert","pre",E,"AlbertForPreTraining","AlbertConfig","albert",_enc(layers=2,embedding_size=32))
A("electra","a",E,"ElectraForMaskedLM","ElectraConfig","electra",_enc(embedding_size=32))
A("electra","same",E,"ElectraForMaskedLM","ElectraConfig","electra",_enc(embedding_size=64))
A("electra","base",E,"ElectraModel","ElectraConfig","electra",_enc(embedding_size=32),sentence_embedding=True)
A("electra","pre",E,"ElectraForPreTraining","ElectraConfig","electra",_enc(embedding_size=32))
A("electra","cls",E,"ElectraForSequenceClassification","ElectraConfig","electra",_enc(embedding_size=32,num_labels=3))
A("mpnet","a",E,"MPNetForMaskedLM","MPNetConfig","mpnet",_enc())
A("mpnet","base",E,"MPNetModel","MPNetConfig","mpnet",_enc(),sentence_embedding=True)
A("mpnet","cls",E,"MPNetForSequenceClassification","MPNetConfig","mpnet",_enc(num_labels=3))
MB=dict(reference_compile=False)
A("modernbert","b",E,"ModernBertModel","ModernBertConfig","modernbert",_enc(layers=3,local_attention=8,global_attn_every_n_layers=2,**MB),sentence_embedding=True)
A("modernbert","bias",E,"ModernBertForMaskedLM","ModernBertConfig","modernbert",_enc(layers=3,local_attention=16,global_attn_every_n_layers=2,norm_bias=True,attention_bias=True,mlp_bias=True,classifier_bias=True,decoder_bias=True,**MB))
A("modernbert","odd",E,"ModernBertForMaskedLM","ModernBertConfig","modernbert",_enc(layers=4,local_attention=15,global_attn_every_n_layers=3,local_rope_theta=500.,tie_word_embeddings=False,decoder_bias=False,hidden_activation="silu",**MB))
A("modernbert","cls",E,"ModernBertForSequenceClassification","ModernBertConfig","modernbert",_enc(layers=3,local_attention=16,num_labels=3,**MB))
A("modernbert","clsmean",E,"ModernBertForSequenceClassification","ModernBertConfig","modernbert",_enc(layers=3,local_attention=16,num_labels=3,classifier_pooling="mean",classifier_activation="relu",**MB))
A("ernie","a",E,"ErnieForMaskedLM","ErnieConfig","bert",_enc(use_task_id=False))
A("ernie","task",E,"ErnieForMaskedLM","ErnieConfig","bert",_enc(use_task_id=True,task_type_vocab_size=3))
A("ernie","cls",E,"ErnieForSequenceClassification","ErnieConfig","bert",_enc(use_task_id=False,num_labels=3))
A("esm","a",E,"EsmForMaskedLM","EsmConfig","bert",_enc(position_embedding_type="rotary",token_dropout=False,mask_token_id=4))
A("esm","drop",E,"EsmForMaskedLM","EsmConfig","bert",_enc(position_embedding_type="rotary",token_dropout=True,mask_token_id=4))
A("esm","abs",E,"EsmForMaskedLM","EsmConfig","bert",_enc(position_embedding_type="absolute",token_dropout=False,emb_layer_norm_before=True,mask_token_id=4))
A("bert_generation","a",E,"BertGenerationEncoder","BertGenerationConfig","xlmr",_enc())
A("roberta_prelayernorm","a",E,"RobertaPreLayerNormForMaskedLM","RobertaPreLayerNormConfig","roberta",_enc(type_vocab_size=1))
A("roberta_prelayernorm","cls",E,"RobertaPreLayerNormForSequenceClassification","RobertaPreLayerNormConfig","roberta",_enc(type_vocab_size=1,num_labels=3))
A("xmod","a",E,"XmodForMaskedLM","XmodConfig","xlmr",_enc(type_vocab_size=1,default_language="en_XX",languages=["en_XX","de_DE"]))
A("convbert","a",E,"ConvBertForMaskedLM","ConvBertConfig","bert",_enc(embedding_size=64,head_ratio=2))
A("megatron_bert","a",E,"MegatronBertForMaskedLM","MegatronBertConfig","bert",_enc())
A("megatron_bert","cls",E,"MegatronBertForSequenceClassification","MegatronBertConfig","bert",_enc(num_labels=3))
A("squeezebert","a",E,"SqueezeBertForMaskedLM","SqueezeBertConfig","bert",_enc(embedding_size=64))
A("rembert","a",E,"RemBertForMaskedLM","RemBertConfig","xlmr",_enc(input_embedding_size=32,output_embedding_size=48))
A("rembert","cls",E,"RemBertForSequenceClassification","RemBertConfig","xlmr",_enc(input_embedding_size=32,output_embedding_size=48,num_labels=3))
A("nystromformer","a",E,"NystromformerForMaskedLM","NystromformerConfig","bert",_enc(segment_means_seq_len=16,num_landmarks=8))
A("data2vec_text","a",E,"Data2VecTextForMaskedLM","Data2VecTextConfig","roberta",_enc(type_vocab_size=1))
A("data2vec_text","cls",E,"Data2VecTextForSequenceClassification","Data2VecTextConfig","roberta",_enc(type_vocab_size=1,num_labels=3))
A("ibert","a",E,"IBertForMaskedLM","IBertConfig","roberta",_enc(type_vocab_size=1))
A("layoutlm","a",E,"LayoutLMForMaskedLM","LayoutLMConfig","bert",_enc())
A("deberta","a",E,"DebertaForMaskedLM","DebertaConfig","bert",_enc(relative_attention=True,pos_att_type="c2p|p2c"))
A("deberta_v2","a",E,"DebertaV2ForMaskedLM","DebertaV2Config","albert",_enc(relative_attention=True,pos_att_type="p2c|c2p",position_buckets=16,norm_rel_ebd="layer_norm",share_att_key=True,position_biased_input=False,type_vocab_size=0))
A("deberta_v2","cls",E,"DebertaV2ForSequenceClassification","DebertaV2Config","albert",_enc(relative_attention=True,pos_att_type="p2c|c2p",position_buckets=16,norm_rel_ebd="layer_norm",share_att_key=True,position_biased_input=False,type_vocab_size=0,num_labels=3))
A("mobilebert","a",E,"MobileBertForMaskedLM","MobileBertConfig","bert",_enc())
A("funnel","a",E,"FunnelForMaskedLM","FunnelConfig","bert",dict(d_model=64,n_head=4,d_head=16,d_inner=128,block_sizes=[1,1]))
A("fnet","a",E,"FNetForMaskedLM","FNetConfig","albert",_enc())
A("flaubert","a",E,"FlaubertWithLMHeadModel","FlaubertConfig","roberta",dict(emb_dim=64,n_layers=2,n_heads=4))
A("longformer","a",E,"LongformerForMaskedLM","LongformerConfig","roberta",_enc(type_vocab_size=1,attention_window=8))
A("big_bird","a",E,"BigBirdForMaskedLM","BigBirdConfig","albert",_enc(attention_type="original_full"))
A("roformer","a",E,"RoFormerForMaskedLM","RoFormerConfig","bert",_enc(embedding_size=32))
A("roformer","val",E,"RoFormerForMaskedLM","RoFormerConfig","bert",_enc(embedding_size=64,rotary_value=True))
A("mra","a",E,"MraForMaskedLM","MraConfig","roberta",_enc())
A("yoso","a",E,"YosoForMaskedLM","YosoConfig","albert",_enc())
A("canine","a",E,"CanineModel","CanineConfig","bert",_enc())
A("luke","a",E,"LukeForMaskedLM","LukeConfig","roberta",_enc(entity_vocab_size=20,entity_emb_size=16))
A("t5_encoder","a",E,"T5EncoderModel","T5Config","t5",_t5())
A("mt5_encoder","a",E,"MT5EncoderModel","MT5Config","t5",_t5(feed_forward_proj="gated-gelu"))
# encoder-decoders
G=dict(max_length=60)
B=("BartForConditionalGeneration","BartConfig"); BO=dict(cls="BartTokenizerFast")
A("bart","b",S,*B,"roberta",_ed(enc=1,dec=3,scale_embedding=True,activation_function="relu"),tok_options=BO,generation=dict(max_length=50,num_beams=4,length_penalty=2.0,early_stopping=True,no_repeat_ngram_size=3,min_length=12,forced_bos_token_id=0,forced_eos_token_id=2))
A("bart","never",S,*B,"roberta",_ed(),tok_options=BO,generation=dict(max_length=40,early_stopping="never",length_penalty=-0.5,forced_eos_token_id=2))
A("bart","nosplit",S,*B,"roberta",_ed(tie_word_embeddings=False),tok_options=BO,generation=dict(max_length=40,repetition_penalty=1.3,forced_eos_token_id=None))
A("bart","asym",S,*B,"roberta",dict(d_model=64,encoder_ffn_dim=96,decoder_ffn_dim=160,encoder_layers=2,decoder_layers=1,encoder_attention_heads=4,decoder_attention_heads=8,max_position_embeddings=130),tok_options=BO,generation=dict(max_length=40,encoder_no_repeat_ngram_size=2,forced_eos_token_id=2,exponential_decay_length_penalty=[10,1.05]))
A("bart","cls",E,"BartForSequenceClassification","BartConfig","roberta",_ed(num_labels=3),tok_options=BO)
MBT=("MBartForConditionalGeneration","MBartConfig")
A("mbart","b",S,*MBT,"mbart50",_ed(scale_embedding=True),forced_lang="de_DE",generation=G)
A("mbart","old",S,*MBT,"mbart",_ed(scale_embedding=False,activation_function="relu"),forced_lang="ro_RO",generation=dict(max_length=50,num_beams=5,early_stopping=True))
M2=("M2M100ForConditionalGeneration","M2M100Config")
A("m2m_100","b",S,*M2,"m2m100",_ed(scale_embedding=False,activation_function="gelu",enc=3,dec=1),forced_lang="fr",generation=dict(max_length=50,num_beams=5,early_stopping=True),tok_options=dict(model_type="unigram"))
A("nllb","a",S,*M2,"nllb",_ed(scale_embedding=True,activation_function="relu"),forced_lang="fra_Latn",generation=G)
A("nllb_moe","a",S,"NllbMoeForConditionalGeneration","NllbMoeConfig","nllb",_ed(scale_embedding=True,num_experts=4,encoder_sparse_step=2,decoder_sparse_step=2,expert_capacity=64),forced_lang="fra_Latn",generation=G)
MA=("MarianMTModel","MarianConfig")
A("marian","b",S,*MA,"marian",_ed(scale_embedding=False,activation_function="relu",share_encoder_decoder_embeddings=False),tok_options=dict(separate=True),generation=dict(max_length=50,num_beams=6,bad_words_pad=True))
A("marian","bw",S,*MA,"marian",_ed(scale_embedding=True,activation_function="gelu",normalize_embedding=False),generation=dict(max_length=50,num_beams=4,bad_words_ids=[[5,6],[7],[9,10,11]],length_penalty=0.6))
A("pegasus","a",S,"PegasusForConditionalGeneration","PegasusConfig","t5",_ed(scale_embedding=True,activation_function="relu"),generation=dict(max_length=40,num_beams=8,length_penalty=0.8))
A("blenderbot","a",S,"BlenderbotForConditionalGeneration","BlenderbotConfig","roberta",_ed(scale_embedding=True),tok_options=dict(cls="BlenderbotTokenizerFast"),generation=dict(max_length=40,min_length=8,num_beams=10,length_penalty=0.65,no_repeat_ngram_size=3,encoder_no_repeat_ngram_size=3))
A("blenderbot_small","a",S,"BlenderbotSmallForConditionalGeneration","BlenderbotSmallConfig","roberta",_ed(scale_embedding=True),generation=dict(max_length=40))
A("plbart","a",S,"PLBartForConditionalGeneration","PLBartConfig","xlmr",_ed(scale_embedding=True),generation=dict(max_length=40))
T=("T5ForConditionalGeneration","T5Config")
A("t5","b",S,*T,"t5",_t5(feed_forward_proj="gated-gelu",tie_word_embeddings=False,num_decoder_layers=3),generation=G)
A("t5","c",S,*T,"t5",_t5(feed_forward_proj="gated-silu",d_kv=24,num_heads=3,relative_attention_num_buckets=32,relative_attention_max_distance=128),generation=dict(max_length=30,no_repeat_ngram_size=3,early_stopping=True,num_beams=4,min_length=5,length_penalty=2.0))
A("t5","gelu",S,*T,"t5",_t5(feed_forward_proj="gelu"),generation=G)
A("mt5","a",S,"MT5ForConditionalGeneration","MT5Config","t5",_t5(),generation=G)
A("umt5","a",S,"UMT5ForConditionalGeneration","UMT5Config","t5",_t5(),generation=G)
A("longt5","a",S,"LongT5ForConditionalGeneration","LongT5Config","t5",_t5(local_radius=7),generation=G)
A("switch","a",S,"SwitchTransformersForConditionalGeneration","SwitchTransformersConfig","t5",_t5(num_experts=4,expert_capacity=64,num_sparse_encoder_layers=1,num_sparse_decoder_layers=1),generation=G)
A("fsmt","a",S,"FSMTForConditionalGeneration","FSMTConfig","roberta",_ed()|dict(langs=["en","de"],src_vocab_size=765,tgt_vocab_size=765),generation=dict(max_length=40))
A("prophetnet","a",S,"ProphetNetForConditionalGeneration","ProphetNetConfig","bert",dict(hidden_size=64,num_encoder_layers=2,num_decoder_layers=2,num_encoder_attention_heads=4,num_decoder_attention_heads=4,encoder_ffn_dim=128,decoder_ffn_dim=128,max_position_embeddings=130),generation=G)
A("bigbird_pegasus","a",S,"BigBirdPegasusForConditionalGeneration","BigBirdPegasusConfig","t5",_ed(attention_type="original_full"),generation=G)
A("led","a",S,"LEDForConditionalGeneration","LEDConfig","roberta",dict(d_model=64,encoder_ffn_dim=128,decoder_ffn_dim=128,encoder_layers=2,decoder_layers=2,encoder_attention_heads=4,decoder_attention_heads=4,attention_window=[8,8]),tok_options=dict(cls="BartTokenizerFast"),generation=G)
A("mvp","a",S,"MvpForConditionalGeneration","MvpConfig","roberta",_ed(),tok_options=dict(cls="BartTokenizerFast"),generation=dict(max_length=40))

plain = make.config_for


def config_for(v, built):
    """The generator's configuration, with the start tokens of families that it does not know."""
    c, ids = plain(v, built), built.special
    if v.family in ("umt5", "longt5", "switch", "pegasus"):
        c.decoder_start_token_id = ids.get("pad", 0)
    if v.family in ("nllb", "nllb_moe"):
        c.decoder_start_token_id = ids["eos"]
    if v.family == "esm":
        c.mask_token_id = ids.get("mask")
    return c


make.config_for = config_for
os.makedirs(args.out, exist_ok=True)
for v in families.VARIANTS:
    name = f"{v.family}-{v.name}"
    if re.search(args.pattern, name):
        try:
            made = make.make(v, args.seed, os.path.join(args.out, name))
            print("made", name, *made["weak"], flush=True)
        except Exception as e:  # transformers refuses some, which must not hide the others
            print("not made", name, type(e).__name__, str(e)[:200].replace("\n", " "), flush=True)
